// Serving and accuracy rows as what the formats of other tools hold: named numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/endtoend/verdicts.h"
#include "harness/report/rows.h"

namespace moegauge {

struct ExportedNumber {
  std::string id = {};    // of the point, and its variant where the file holds several of it
  std::string name = {};  // as in the row: ttft_ms.mean, value
  double value = 0;
  std::string unit = {};                     // ms, tok/s, requests/s, score; empty of the rest
  std::optional<GoodDirection> better = {};  // none of what was served, and of spreads
  std::optional<double> standard_error = {};
  const EndToEndRow* row = nullptr;

  // What stands for it alone: a score by its point.
  std::string full_id() const { return unit == "score" ? id : id + "/" + name; }
};

// In the order of the file.
std::vector<ExportedNumber> exported_numbers(const Result& result);

// "leaves out 12 numbers of serving and accuracy: WHY"; empty for none.
std::string left_out(std::size_t count, const std::string& why);

}  // namespace moegauge
