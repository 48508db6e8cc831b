// Two results side by side, and the rivals within one: what `compare` shows. Nothing here passes or
// fails; that is judge.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/judge/change.h"
#include "harness/judge/judge.h"
#include "harness/judge/policy.h"
#include "harness/judge/statistics.h"
#include "harness/result/record.h"

namespace moegauge {

struct ComparedCase {
  std::string id = {};
  std::string point = {};
  std::int64_t tokens = 0;
  std::optional<double> a_us = {}, b_us = {};  // medians
  std::optional<RatioInterval> ratio = {};     // b / a
  Change change = Change::none;
  std::string note = {};  // why there is no ratio, or what else differs
};

struct ComparedRivals {
  Comparison measured = {};  // as recorded: a / b, interleaved in one process
  Change change = Change::none;
};

struct SideBySide {
  std::vector<ComparedCase> cases = {};  // in A's order, then what only B holds
  std::vector<ComparedRivals> rivals_a = {}, rivals_b = {};
  std::optional<double> geometric_mean_ratio = {};  // b / a
  // Serving and accuracy of B against A: whoever reads such rows judges them and puts them here.
  std::vector<CaseVerdict> numbers = {};
  std::vector<std::string> means = {};  // over points of serving; decide nothing
};

// Rivals of one process differ by less noise than processes do: half the precision to which medians
// are measured (1% each way).
inline constexpr double rivals_margin = 1.01;

// The policy's ratio limit is the margin between the two files; its between_runs widens the
// intervals. Only cases whose id (rivals: point) matches `filter` take part.
SideBySide compare(const Result& a, const Result& b, const Policy& policy,
                   const std::string& filter = "*");

}  // namespace moegauge
