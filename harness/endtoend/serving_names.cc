#include "harness/endtoend/serving_names.h"

#include <algorithm>
#include <array>

#include "harness/endtoend/pasted_text.h"

namespace moegauge {
namespace {

// "p99", "p99.9"
bool is_percentile(const std::string& word) {
  return word.size() > 1 && word[0] == 'p' && number_in(word.substr(1)).has_value();
}

}  // namespace

std::string timing_name(const std::string& statistic, const std::string& time) {
  static constexpr std::array times = {"ttft", "tpot", "itl", "e2el"};
  const std::string which = lower_case(time), of = lower_case(statistic);
  if (std::ranges::find(times, which) == times.end()) return "";
  if (of != "mean" && of != "median" && of != "std" && !is_percentile(of)) return "";
  return (which == "e2el" ? "e2e" : which) + "_ms." + of;
}

}  // namespace moegauge
