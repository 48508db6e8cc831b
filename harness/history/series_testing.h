// The series of results/series, made by scripts/make_series.py.
#pragma once

#include <string>
#include <vector>

#include "harness/history/summary.h"
#include "harness/json/cursor.h"
#include "harness/json/document.h"

namespace moegauge {

struct Series {
  std::string kind, noise;
  std::int64_t percent = 0, at = 0, renamed_at = 0;
  std::vector<HistoryPoint> points;
};

inline std::vector<Series> all_series() {
  const JsonDocument document = JsonDocument::read("results/series/latency.json");
  std::vector<Series> list;
  for (const JsonCursor& one : JsonCursor(document).at("series").items()) {
    Series series{.kind = one.at("kind").string(), .noise = one.at("noise").string(), .points = {}};
    if (const auto percent = one.find("percent")) series.percent = percent->integer(0, 100);
    if (const auto at = one.find("at")) series.at = at->integer(0, 1000);
    if (const auto at = one.find("renamed_at")) series.renamed_at = at->integer(0, 1000);
    std::int64_t run = 0;
    for (const JsonCursor& value : one.at("values").items()) {
      HistoryPoint point{.run = ++run, .time = run, .status = Status::ok};
      point.median = point.centre = 0.01 * static_cast<double>(value.integer(1, 1'000'000));
      series.points.push_back(point);
    }
    list.push_back(std::move(series));
  }
  return list;
}

}  // namespace moegauge
