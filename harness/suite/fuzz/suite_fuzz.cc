// libFuzzer: any bytes are either refused with an InputError or give cases whose ids are all
// different. Run in the source folder, whose models suites may name. docs/development.md.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "harness/suite/suite.h"
#include "reference/base/input_error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const auto document = moegauge::JsonDocument::parse(std::move(text), "fuzz");
    const moegauge::Suite suite = moegauge::read_suite(document, "suites", ".");
    std::set<std::string> ids;
    for (const moegauge::CaseCoordinates& c : suite.cases) {
      if (!ids.insert(moegauge::case_id(c)).second) __builtin_trap();
      moegauge::parse_config_request(c.config, "fuzz");
    }
  } catch (const moegauge::InputError&) {
  }
  return 0;
}
