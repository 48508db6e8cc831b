// Results in the formats of other tools. Pure functions; each is validated by the tool that reads
// it (readers_test.py).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "harness/report/rows.h"

namespace moegauge {

struct ExportOptions {
  std::string chart = "latency";  // of vega
};

struct ExportFormat {
  std::string_view name;
  std::string_view description;
  // Throws InputError where the input cannot be written so.
  std::string (*write)(const ReportInput& input, const ExportOptions& options);
};

// In the order in which --help shows them. A format is a function below and an entry.
std::span<const ExportFormat> export_formats();

std::string google_benchmark(const ReportInput& input, const ExportOptions& options);
std::string google_benchmark_medians(const ReportInput& input, const ExportOptions& options);
std::string github_action_benchmark(const ReportInput& input, const ExportOptions& options);
std::string csv_long(const ReportInput& input, const ExportOptions& options);
std::string csv_wide(const ReportInput& input, const ExportOptions& options);
std::string csv_otava(const ReportInput& input, const ExportOptions& options);
std::string vega_spec(const ReportInput& input, const ExportOptions& options);
std::string markdown_tables(const ReportInput& input, const ExportOptions& options);

}  // namespace moegauge
