// libFuzzer: any bytes are either refused with an InputError or give a result whose cases, written
// and read again, are the same. docs/development.md.
#include <cstddef>
#include <cstdint>
#include <string>

#include "harness/json/document.h"
#include "harness/result/result_io.h"
#include "reference/base/input_error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  moegauge::LoadedResult loaded;
  try {
    loaded = moegauge::read_result(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  } catch (const moegauge::InputError&) {
    return 0;
  }
  // What was accepted must be readable for ever: here an InputError is a fault.
  for (const moegauge::CaseRecord& record : loaded.result.cases) {
    const std::string line = moegauge::case_to_line(record);
    const auto document = moegauge::JsonDocument::parse(line, "again");
    if (moegauge::case_to_line(moegauge::case_from_json(document.root(), "again")) != line) {
      __builtin_trap();
    }
  }
  return 0;
}
