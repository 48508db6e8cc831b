#include "harness/export/export.h"

#include <array>

namespace moegauge {

std::span<const ExportFormat> export_formats() {
  static constexpr std::array formats = {
      ExportFormat{"google-benchmark", "Google Benchmark's JSON, for its compare.py",
                   google_benchmark},
      ExportFormat{"google-benchmark-median", "the same with one median row per case",
                   google_benchmark_medians},
      ExportFormat{"csv", "one line per case and number", csv_long},
      ExportFormat{"csv-wide", "one line per case", csv_wide},
      ExportFormat{"csv-otava",
                   "one line per result, one column per case, as Apache Otava reads it", csv_otava},
      ExportFormat{"github-action-benchmark", "for the tool customSmallerIsBetter",
                   github_action_benchmark},
      ExportFormat{"github-action-benchmark-bigger",
                   "for customBiggerIsBetter: rates and scores of moegauge ingest",
                   github_action_benchmark_bigger},
      ExportFormat{"vega", "one chart of the report as a Vega-Lite specification with its data",
                   vega_spec, true},
      ExportFormat{"markdown", "a table per layer and scheme", markdown_tables},
  };
  return formats;
}

}  // namespace moegauge
