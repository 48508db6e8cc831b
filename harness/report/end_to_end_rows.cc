// One row per number of serving and per score.
#include <map>

#include "harness/report/row_parts.h"

namespace moegauge {
namespace {

// Of a time less is better, so that its gain is a fall. Scores of which less is better are rare and
// say so themselves.
double sign_of(const NumberJudgement& j, const EndToEndRow& row) {
  return j.unit == "ms" || (!j.relative && row.lower_is_better) ? -1 : 1;
}

void put_number_verdict(Row& out, const CaseVerdict& verdict, const EndToEndRow& row) {
  out["verdict"] = std::string(to_string(verdict.verdict));
  out["why"] = verdict.sentence();
  if (!verdict.number) return;
  const NumberJudgement& j = *verdict.number;
  const double sign = sign_of(j, row);
  out["baseline"] = j.baseline;
  out["limit"] = j.limit;
  out["gain"] = sign * j.change;
  if (j.low && j.high) {
    out["gain_low"] = sign > 0 ? *j.low : -*j.high;
    out["gain_high"] = sign > 0 ? *j.high : -*j.low;
  }
  if (!j.suspect.empty()) out["marks"] = "suspect: " + j.suspect;
}

// Serving is judged number by number, a task by its score.
std::string verdict_id(const EndToEndRow& row, const std::string& number) {
  return row.op == "eval" ? row.point() : row.point() + "/" + number;
}

}  // namespace

std::vector<Row> end_to_end_rows(const ReportInput& input,
                                 const std::vector<Judgement>& judgements) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < input.files.size(); ++i) {
    const ReportFile& file = input.files[i];
    std::map<std::string, const CaseVerdict*> verdicts;
    if (i < judgements.size()) {
      for (const CaseVerdict& verdict : judgements[i].cases) verdicts[verdict.id] = &verdict;
    }
    for (const EndToEndRow& row : file.result.end_to_end) {
      const std::string point = row.point();
      for (const auto& [number, value] : row.numbers) {
        // Of a score the error stands beside it.
        if (row.op == "eval" && number != "value") continue;
        Row out;
        out["id"] = verdict_id(row, number);
        out["op"] = row.op;
        out["model"] = row.model;
        out["file"] = file.name;
        out["point"] = point.substr(point.find('/') + 1);
        out["number"] = row.op == "eval" ? "score" : number;
        if (!row.variant().empty()) out["variant"] = row.variant();
        out["value"] = value;
        if (const auto error = row.number("stderr")) out["stderr"] = *error;
        if (const auto questions = row.number("samples")) out["questions"] = *questions;
        out["source"] = row.source.text();
        if (const auto found = verdicts.find(out["id"]); found != verdicts.end())
          put_number_verdict(out, *found->second, row);
        rows.push_back(std::move(out));
      }
    }
  }
  return rows;
}

}  // namespace moegauge
