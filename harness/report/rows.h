// What a report draws, as flat tables: every row holds its own coordinates, so that one filter and
// one chart description serve all of them. Pure functions of result files.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/judge/judge.h"
#include "harness/judge/policy.h"
#include "harness/report/nightly.h"
#include "harness/result/record.h"

namespace moegauge {

// What a layer is, which a result file only names: as served on one rank.
struct LayerFacts {
  std::int64_t experts = 0, top_k = 0, hidden = 0, intermediate = 0;
};
// None where the model is not known here: a result may come from anywhere.
using LayerFactsOf = std::function<std::optional<LayerFacts>(const CaseCoordinates&)>;

struct ReportFile {
  std::string name = {};
  Result result = {};
  std::string cut = {};  // where the file was cut; else empty
};

struct ReportInput {
  std::vector<ReportFile> files = {};
  std::optional<ReportFile> baseline = {};
  std::optional<Nightly> nightly = {};
  Policy policy = {};
  ShippedLimits shipped = {};
  LayerFactsOf facts = {};
};

using Row = nlohmann::ordered_json;  // an object; fields that do not apply are absent

struct ReportRows {
  std::vector<Row> cases = {};       // every case of every file
  std::vector<Row> pairs = {};       // two rivals of one point, or now and the baseline
  std::vector<Row> stages = {};      // one per case and stage
  std::vector<Row> history = {};     // one per case and run of a history
  std::vector<Row> trend = {};       // cases that results of several dates hold
  std::vector<Row> end_to_end = {};  // every number of serving, every score

  // As chart files name them under data.name.
  const std::vector<Row>& table(const std::string& name) const;
};

// The names of the tables, in order.
inline constexpr std::array table_names = {"cases",   "pairs", "stages",
                                           "history", "trend", "end_to_end"};

// `judgements` holds one per file, or nothing where there is no baseline.
ReportRows rows_of(const ReportInput& input, const std::vector<Judgement>& judgements);

// Columns instead of rows: {"rows": n, "columns": {name: column}}. A column is {"all": value},
// {"words": [...], "at": [...]} (-1 for none), {"words": [...], "runs": [word, rows, word, ...]}
// where neighbours are alike, or {"values": [...]} (null for none).
nlohmann::ordered_json columns_of(const std::vector<Row>& rows);

}  // namespace moegauge
