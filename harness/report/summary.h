// The top of a report: the verdict in one sentence, the machines, what changed, and where to look
// first.
#pragma once

#include <string>
#include <vector>

#include "harness/report/rows.h"

namespace moegauge {

struct WorstCase {
  std::string id = {}, why = {}, repro = {};
};

struct MachineLine {
  std::string file = {}, date = {}, host = {}, suite = {}, version = {};
  std::string devices = {};                 // joined; of the cases that say
  std::size_t cases = 0, ok = 0, rows = 0;  // rows: of serving and accuracy
};

struct ReportSummary {
  std::string level = {};  // pass, fail, unknown: how the sentence is coloured
  std::string sentence = {};
  std::vector<MachineLine> machines = {};  // the results, then the baseline
  std::vector<std::string> changes = {};   // since the baseline, each with how many cases it is of
  std::vector<std::string> warnings = {};  // cut files and the like
  std::vector<WorstCase> worst = {};       // at most worst_cases, worst first
};

inline constexpr std::size_t worst_cases = 5;

ReportSummary summary_of(const ReportInput& input, const std::vector<Judgement>& judgements);

}  // namespace moegauge
