// Two cases held against each other: rivals of one point within a file, and now against the
// baseline.
#include <algorithm>
#include <map>
#include <utility>

#include "harness/report/row_parts.h"

namespace moegauge {
namespace {

using Measurements = std::map<std::pair<std::string, std::string>, const Comparison*>;

Measurements interleaved(const Result& result) {
  Measurements measured;
  for (const Comparison& c : result.comparisons) measured.emplace(std::pair(c.a, c.b), &c);
  return measured;
}

// latency(base) / latency(rival): above 1, the rival is faster. `lost` where the whole interval
// lies below 1; without one, where those of the two medians do not meet.
void put_speedup(Row& row, const Measurements& measured, const CaseRecord& base,
                 const CaseRecord& rival) {
  if (const auto found = measured.find({base.id(), rival.id()}); found != measured.end()) {
    const Comparison& c = *found->second;
    row["speedup"] = c.ratio;
    row["low"] = c.ci_low;
    row["high"] = c.ci_high;
  } else if (const auto turned = measured.find({rival.id(), base.id()});
             turned != measured.end() && turned->second->ci_low > 0) {
    const Comparison& c = *turned->second;
    row["speedup"] = 1 / c.ratio;
    row["low"] = 1 / c.ci_high;
    row["high"] = 1 / c.ci_low;
  } else {
    row["speedup"] = base.measured()->latency.median / rival.measured()->latency.median;
  }
  row["interleaved"] = row.contains("low");
  row["lost"] = row.contains("high")
                    ? row["high"] < 1.0
                    : rival.measured()->latency.ci_low > base.measured()->latency.ci_high;
}

// Of the first of the two: what its point is to tell.
void put_rival(Row& row, const CaseRecord& rival) {
  put_finite(row, "total", rival.measured()->check.error.total.relative_l2);
  row["values"] = values_text(rival.config);
}

class PairWriter {
 public:
  PairWriter(const ReportFile& file, const Varying& varying, std::vector<Row>& rows)
      : file_(file), varying_(varying), measured_(interleaved(file.result)), rows_(rows) {}

  // `same` is what the two have in common: with the panel it names a line of the map.
  void operator()(const std::string& kind, const std::string& same, const CaseRecord& base,
                  const CaseRecord& rival) {
    if (!(base.measured()->latency.median > 0 && rival.measured()->latency.median > 0)) return;
    Row row = coordinates_row(rival, file_, varying_);
    row["kind"] = kind;
    row["place"] = row["panel"].get<std::string>() + " · " + same;
    row["base_us"] = base.measured()->latency.median;
    row["rival_us"] = rival.measured()->latency.median;
    row["base"] = base.id();
    row["rival"] = rival.id();
    put_speedup(row, measured_, base, rival);
    put_rival(row, rival);
    rows_.push_back(std::move(row));
  }

 private:
  const ReportFile& file_;
  const Varying& varying_;
  const Measurements measured_;
  std::vector<Row>& rows_;
};

// Every config over the default of its backend; every backend over those listed after it, config
// for config.
void pair_up(const std::vector<const CaseRecord*>& rivals, PairWriter& write) {
  for (const CaseRecord* base : rivals) {
    for (const CaseRecord* rival : rivals) {
      const std::string config = shown_config(rival->coordinates);
      if (base->backend == rival->backend) {
        if (base->coordinates.config != "default" || rival == base) continue;
        const bool tuned = config == "tuned";
        write(tuned ? "tuned over default" : "other configs over default",
              tuned ? base->backend : base->backend + " " + config, *base, *rival);
      } else if (base->coordinates.config == rival->coordinates.config &&
                 rival->backend < base->backend) {
        write(rival->backend + " over " + base->backend, config, *base, *rival);
      }
    }
  }
}

void add_rivals(const ReportFile& file, const Varying& varying, std::vector<Row>& rows) {
  std::map<std::string, std::vector<const CaseRecord*>> points;
  std::vector<std::string> order;
  for (const CaseRecord& record : file.result.cases) {
    if (!record.measured() || record.coordinates.tokens == 0) continue;
    const std::string point = point_id(record.coordinates);
    if (!points.contains(point)) order.push_back(point);
    points[point].push_back(&record);
  }
  PairWriter write(file, varying, rows);
  for (const std::string& point : order) pair_up(points[point], write);
}

void add_changes(const ReportFile& file, const Judgement& judgement, const char* kind,
                 const Varying& varying, std::vector<Row>& rows) {
  std::map<std::string, const CaseRecord*> records;
  for (const CaseRecord& record : file.result.cases) records.emplace(record.id(), &record);
  for (const CaseVerdict& verdict : judgement.cases) {
    const auto found = records.find(verdict.id);
    if (!verdict.latency || found == records.end() || !found->second->measured()) continue;
    const LatencyJudgement& j = *verdict.latency;
    Row row = coordinates_row(*found->second, file, varying);
    row["kind"] = kind;
    row["place"] = row["panel"].get<std::string>() + " · " + row["series"].get<std::string>();
    row["base_us"] = j.baseline_us;
    row["rival_us"] = j.result_us;
    row["base"] = verdict.id;
    row["rival"] = verdict.id;
    row["speedup"] = 1 / j.ratio;
    row["low"] = 1 / j.high;
    row["high"] = 1 / j.low;
    row["lost"] = row["high"] < 1.0;
    row["interleaved"] = false;
    put_rival(row, *found->second);
    rows.push_back(std::move(row));
  }
}

}  // namespace

std::vector<Row> pair_rows(const ReportInput& input, const std::vector<Judgement>& judgements,
                           const Varying& varying) {
  std::vector<Row> rows;
  const char* kind = input.baseline ? "now over the baseline" : "now over the history's last runs";
  for (std::size_t i = 0; i < input.files.size(); ++i) {
    add_rivals(input.files[i], varying, rows);
    if (i < judgements.size()) add_changes(input.files[i], judgements[i], kind, varying, rows);
  }
  return rows;
}

}  // namespace moegauge
