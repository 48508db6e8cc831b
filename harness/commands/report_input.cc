#include "harness/commands/report_input.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <ostream>
#include <span>
#include <system_error>

#include "harness/commands/options.h"
#include "harness/commands/results.h"
#include "harness/commands/shipped_limits.h"
#include "harness/endtoend/judge_rows.h"
#include "harness/judge/known_issues.h"
#include "harness/root.h"
#include "harness/suite/select.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

// Only the last part of the path, unless two files share it.
std::string shown_name(const std::string& file, const std::vector<std::string>& all) {
  const fs::path name = fs::path(file).filename();
  const auto same = std::ranges::count_if(
      all, [&](const std::string& other) { return fs::path(other).filename() == name; });
  return same > 1 ? file : name.string();
}

ReportFile read_one(const std::string& file, const ReportFiles& files, const std::string& name,
                    const Environment& environment) {
  LoadedResult loaded = load_for_judging(file, environment);
  Result& result = loaded.result;
  if (files.filter != "*") {
    std::erase_if(result.cases, [&](const CaseRecord& record) {
      return !matches_glob(files.filter, record.id());
    });
    std::erase_if(result.end_to_end, [&](const EndToEndRow& row) {
      // The glob may name a number of the point too.
      return !matches_glob(files.filter, row.point()) &&
             std::ranges::none_of(row.numbers, [&](const auto& number) {
               return matches_glob(files.filter, row.point() + "/" + number.first);
             });
    });
    std::erase_if(result.comparisons, [&](const Comparison& c) {
      return !matches_glob(files.filter, c.a) || !matches_glob(files.filter, c.b);
    });
  }
  return {.name = name, .result = std::move(result), .cut = loaded.truncated.value_or("")};
}

}  // namespace

void add_report_files(CLI::App& app, ReportFiles& files) {
  app.add_option("RESULT", files.results, "Result files")->required();
  add_filter(app, files.filter, "Only cases whose id matches this glob");
  app.add_option("--baseline", files.baseline, "Result file to judge them against");
  add_policy(app, files.policy, "Name of a shipped policy, or a policy file");
}

std::vector<NamedFile> named_files(const ReportFiles& files) {
  std::vector<NamedFile> named = {{"the policy", find_policy(files.policy, find_root())}};
  for (const std::string& file : files.results) named.push_back({"a result", file});
  if (!files.baseline.empty()) named.push_back({"the baseline", files.baseline});
  return named;
}

bool baseline_is_missing(const ReportFiles& files, const Environment& environment) {
  std::error_code ignored;
  if (files.baseline.empty() || fs::exists(files.baseline, ignored)) return false;
  environment.err << "moegauge: " << files.baseline
                  << ": no such baseline, so no verdict; record one with moegauge run --out\n";
  return true;
}

bool history_is_missing(const std::string& file, const Environment& environment) {
  std::error_code ignored;
  if (file.empty() || fs::exists(file, ignored)) return false;
  environment.err << "moegauge: " << file
                  << ": no such history; make one with moegauge history add\n";
  return true;
}

void add_nightly(HistoryStore& store, const std::string& file, ReportInput& input) {
  std::vector<const Result*> results;
  for (const ReportFile& one : input.files) results.push_back(&one.result);
  input.nightly = nightly_of(store, fs::path(file).filename().string(), results);
}

ReportInput read_report_input(const ReportFiles& files, const Environment& environment) {
  const fs::path root = find_root();
  ReportInput input{.policy = load_policy(find_policy(files.policy, root)),
                    .shipped = shipped_limits(root),
                    .facts = layer_facts(root)};
  std::vector<std::string> all = files.results;
  if (!files.baseline.empty()) all.push_back(files.baseline);
  for (const std::string& file : files.results)
    input.files.push_back(read_one(file, files, shown_name(file, all), environment));
  if (!files.baseline.empty())
    input.baseline = read_one(files.baseline, files, shown_name(files.baseline, all), environment);
  return input;
}

std::vector<Judgement> judged(const ReportInput& input) {
  std::vector<Judgement> judgements;
  if (!input.baseline) return judgements;
  for (const ReportFile& file : input.files) {
    judgements.push_back(judge(file.result, input.baseline->result, input.policy, input.shipped));
    judge_end_to_end(std::span(&file.result, 1), std::span(&input.baseline->result, 1),
                     input.policy, "*", judgements.back());
    apply_known_issues(judgements.back(), input.policy, today());
    judgements.back().cut = file.cut.empty() ? input.baseline->cut : file.cut;
  }
  return judgements;
}

}  // namespace moegauge
