// What the commands that show several results against a baseline share.
#pragma once

#include <string>
#include <vector>

#include "harness/commands/command.h"
#include "harness/commands/output_place.h"
#include "harness/history/store.h"
#include "harness/judge/judge.h"
#include "harness/report/rows.h"

namespace moegauge {

struct ReportFiles {
  std::vector<std::string> results = {};
  std::string baseline = {};
  std::string policy = "default";
  std::string filter = "*";
};

// RESULT..., --filter, --baseline and --policy.
void add_report_files(CLI::App& app, ReportFiles& files);
// What an output must not overwrite.
std::vector<NamedFile> named_files(const ReportFiles& files);

// Says so on `err`; without the baseline that was named nothing is made.
bool baseline_is_missing(const ReportFiles& files, const Environment& environment);

bool history_is_missing(const std::string& file, const Environment& environment);
// What the history in `file` holds of the results' cases.
void add_nightly(HistoryStore& store, const std::string& file, ReportInput& input);

// Reads everything; a file that was cut gives its whole cases and a warning on `err`. Throws
// InputError.
ReportInput read_report_input(const ReportFiles& files, const Environment& environment);

// One judgement per file; nothing where there is no baseline.
std::vector<Judgement> judged(const ReportInput& input);

}  // namespace moegauge
