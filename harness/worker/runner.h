// Runs cases in worker processes and turns every way in which one can end into a record.
#pragma once

#include <csignal>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/session.h"
#include "harness/result/record.h"
#include "harness/suite/suite.h"

namespace moegauge {

struct RunnerSettings {
  MeasureSettings measure;
  double timeout_seconds = 300;  // that a case may be in flight, all its phases together
  double budget_seconds = std::numeric_limits<double>::infinity();  // after which no point starts
  std::filesystem::path dump = {};  // folder for what each case was given and gave; empty: none
  int retries = 0;                  // of a case that failed before its kernel's first launch
};

struct RunnerHooks {
  // A case that is about to be measured, and the final record of one (not of skipped ones).
  std::function<void(const CaseCoordinates&)> started;
  std::function<void(const CaseRecord&)> finished;
  std::function<std::string(const CaseCoordinates&)> repro;
  // Asked between events; true ends the run in order. `wait_mask` is the signal mask while waiting,
  // and that of the workers.
  std::function<bool()> interrupted;
  sigset_t wait_mask;
};

// How many cases run_cases would measure: those without a record and, since rivals are measured
// together, the ok ones of the same points. `records` is parallel to `cases`.
std::size_t cases_to_measure(const std::vector<CaseCoordinates>& cases,
                             const std::vector<std::optional<CaseRecord>>& records);

// The file in the folder `dump` of a case: its name is the case's alone, so that shards, selections
// and runs of several suites share a folder.
std::filesystem::path dump_file(const std::filesystem::path& dump, const CaseCoordinates& c);

// Fills every record that is not there yet. Cases that were not run (budget, interrupt) are
// `skipped` with that reason.
void run_cases(const std::vector<CaseCoordinates>& cases,
               std::vector<std::optional<CaseRecord>>& records, const RunnerSettings& settings,
               const RunnerHooks& hooks);

}  // namespace moegauge
