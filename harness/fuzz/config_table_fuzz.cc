// libFuzzer: any bytes are either refused with an InputError or give a table in which every entry
// is the choice for its own batch size. docs/development.md.
#include <cstddef>
#include <cstdint>
#include <string>

#include "harness/config_table.h"
#include "reference/base/input_error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const auto document = moegauge::JsonDocument::parse(std::move(text), "fuzz");
    const moegauge::ConfigTable table = moegauge::read_config_table(document, "fuzz");
    if (table.entries.empty()) __builtin_trap();
    for (const auto& [tokens, config] : table.entries) {
      const moegauge::ConfigChoice choice = moegauge::choose(table, tokens);
      if (choice.key != tokens || choice.extrapolated || choice.config != config) __builtin_trap();
    }
  } catch (const moegauge::InputError&) {
  }
  return 0;
}
