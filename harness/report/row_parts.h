// The parts of rows.h's tables; rows.cc puts them together.
#pragma once

#include <string>
#include <vector>

#include "harness/report/rows.h"

namespace moegauge {

// Coordinates that differ anywhere in the report, and so must be named in its charts.
struct Varying {
  bool op = false, routing = false, inputs = false, cache = false, launch = false, file = false;
};
Varying varying_of(const ReportInput& input);

// As the case's id shows it.
std::string shown_config(const CaseCoordinates& c);
// "BLOCK_SIZE_M=16 num_stages=4"
std::string values_text(const ConfigRecord& config);
std::string joined(const std::vector<std::string>& words, const char* between);
// JSON has no infinity: a number that is none is absent, and the case says why.
void put_finite(Row& row, const char* name, double value);

// What every table's rows begin with.
Row coordinates_row(const CaseRecord& record, const ReportFile& file, const Varying& varying);

std::vector<Row> case_rows(const ReportInput& input, const std::vector<Judgement>& judgements,
                           const Varying& varying);
std::vector<Row> pair_rows(const ReportInput& input, const std::vector<Judgement>& judgements,
                           const Varying& varying);
std::vector<Row> stage_rows(const ReportInput& input, const Varying& varying);
std::vector<Row> end_to_end_rows(const ReportInput& input,
                                 const std::vector<Judgement>& judgements);
// Most telling cases first, as Nightly has them; of each its runs in order, then the results.
std::vector<Row> history_rows(const ReportInput& input, const Varying& varying);
std::vector<Row> trend_rows(const ReportInput& input, const Varying& varying);

}  // namespace moegauge
