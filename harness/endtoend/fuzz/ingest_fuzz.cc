// libFuzzer: any bytes are either refused with an InputError or give rows that, written and read
// again, are the same. docs/development.md.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "harness/endtoend/ingest.h"
#include "reference/base/input_error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const moegauge::NamedText file{"fuzz", std::string(reinterpret_cast<const char*>(data), size)};
  std::vector<moegauge::EndToEndRow> rows;
  try {
    rows = moegauge::ingest(std::span(&file, 1), {});
  } catch (const moegauge::InputError&) {
    return 0;
  }
  // What was accepted must be readable for ever: here an InputError is a fault.
  for (const moegauge::EndToEndRow& row : rows) {
    const auto json = moegauge::to_json(row);
    const auto again = moegauge::end_to_end_from_json(moegauge::JsonCursor(json, "again"));
    if (moegauge::to_json(again) != json) __builtin_trap();
  }
  return 0;
}
