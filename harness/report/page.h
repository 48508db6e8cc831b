// The report as one HTML file that needs nothing else.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "harness/report/rows.h"

namespace moegauge {

// A chart is one Vega-Lite file under charts/; its name is the file's.
struct Chart {
  std::string name = {};
  std::string spec = {};  // JSON; data by name, one of table_names
};
// In the order in which a page shows them.
std::vector<Chart> all_charts();

// Empty where the build had no bundle: the page then has tables and says what is missing.
std::string_view vega_bundle();

// `judgements` as for rows_of. `bundle` is vega_bundle() or, in tests, none.
std::string report_page(const ReportInput& input, const std::vector<Judgement>& judgements,
                        std::string_view bundle);

// The specification of one chart with its data inside: what other tools draw. Throws
// std::out_of_range for a chart that is none of all_charts().
nlohmann::ordered_json chart_with_data(const std::string& chart, const ReportRows& rows);

}  // namespace moegauge
