// Results in the formats of other tools. Pure functions; each is validated by the tool that reads
// it (readers_test.py).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/report/rows.h"

namespace moegauge {

struct ExportOptions {
  std::string chart = "latency";           // of vega
  std::vector<Judgement> judgements = {};  // of the files against the input's baseline
};

struct Exported {
  std::string text = {};
  std::size_t count = 0;      // cases and numbers that it holds
  std::string left_out = {};  // what the format has no place for, and why; else empty
};

struct ExportFormat {
  std::string_view name;
  std::string_view description;
  // Throws InputError where the input cannot be written so.
  Exported (*write)(const ReportInput& input, const ExportOptions& options);
  bool draws = false;  // and so may take a baseline and a history
};

// In the order in which --help shows them. A format is a function below and an entry.
std::span<const ExportFormat> export_formats();

Exported google_benchmark(const ReportInput& input, const ExportOptions& options);
Exported google_benchmark_medians(const ReportInput& input, const ExportOptions& options);
Exported github_action_benchmark(const ReportInput& input, const ExportOptions& options);
Exported github_action_benchmark_bigger(const ReportInput& input, const ExportOptions& options);
Exported csv_long(const ReportInput& input, const ExportOptions& options);
Exported csv_wide(const ReportInput& input, const ExportOptions& options);
Exported csv_otava(const ReportInput& input, const ExportOptions& options);
Exported vega_spec(const ReportInput& input, const ExportOptions& options);
Exported markdown_tables(const ReportInput& input, const ExportOptions& options);

}  // namespace moegauge
