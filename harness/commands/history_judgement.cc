#include "harness/commands/history_judgement.h"

#include <algorithm>
#include <utility>

namespace moegauge {

JudgedByHistory judge_by_history(std::vector<Result> processes, const Policy& policy,
                                 const ShippedLimits& shipped, const Calibration& calibration,
                                 const HistoryBaselineSettings& settings, HistoryStore& store) {
  const HistoryBaseline baseline = history_baseline(store, processes, calibration, settings);
  const bool rows =
      std::ranges::any_of(processes, [](const Result& r) { return !r.end_to_end.empty(); });
  const Result now = representative(std::move(processes));
  const auto against = [&](const HistorySide& side) {
    return judge(now, side.result, policy, shipped, settings.filter, side.evidence);
  };
  Judgement judgement = judge_against(baseline, against(baseline.rolling), against(baseline.anchor),
                                      "add the result and give gate --accept CASE --reason TEXT");
  std::set<std::string> held = to_hold_back(judgement, baseline);
  if (rows) {
    judgement.notes.emplace_back(
        "serving and accuracy rows are not judged against a history: gate them by themselves, with "
        "--baseline");
  }
  return {.judgement = std::move(judgement), .held = std::move(held)};
}

}  // namespace moegauge
