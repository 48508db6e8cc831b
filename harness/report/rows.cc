#include "harness/report/rows.h"

#include <stdexcept>

#include "harness/report/row_parts.h"

namespace moegauge {

const std::vector<Row>& ReportRows::table(const std::string& name) const {
  if (name == "cases") return cases;
  if (name == "pairs") return pairs;
  if (name == "stages") return stages;
  if (name == "history") return history;
  if (name == "trend") return trend;
  if (name == "end_to_end") return end_to_end;
  throw std::out_of_range("no table " + name);
}

ReportRows rows_of(const ReportInput& input, const std::vector<Judgement>& judgements) {
  const Varying varying = varying_of(input);
  return {.cases = case_rows(input, judgements, varying),
          .pairs = pair_rows(input, judgements, varying),
          .stages = stage_rows(input, varying),
          .history = history_rows(input, varying),
          .trend = trend_rows(input, varying),
          .end_to_end = end_to_end_rows(input, judgements)};
}

}  // namespace moegauge
