// A history in memory, for simulations of many: what SQLite keeps, without its disk.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/history/store.h"

namespace moegauge {

class MemoryStore final : public HistoryStore {
 public:
  Added add(const RunSummary& summary, const std::string& who, std::int64_t now) override {
    HistoryRun run = summary.run;
    run.id = next_run_++;
    runs_.push_back(run);
    for (const CaseSummary& one : summary.cases) {
      const auto [known, is_new] =
          at_.try_emplace({one.id, one.device}, static_cast<std::int64_t>(series_.size()));
      const auto index = static_cast<std::size_t>(known->second);
      if (is_new) {
        series_.push_back({.id = known->second, .case_id = one.id, .device = one.device});
        points_.emplace_back();
      }
      HistoryPoint point = one.point;
      point.run = run.id;
      point.time = run.time();
      point.variant = variant_of(one.variant);
      points_[index].push_back(point);
      ++series_[index].points;
      if (point.serves() && anchored_.insert(known->second).second) {
        anchors_.push_back({.series = known->second,
                            .run = run.id,
                            .time = run.time(),
                            .set_at = now,
                            .who = who,
                            .reason = first_anchor_reason});
      }
    }
    return {.run = run.id};
  }
  std::optional<std::int64_t> run_of(const std::string&) override { return std::nullopt; }

  std::vector<HistoryRun> runs() override { return runs_; }
  std::vector<HistorySeries> series() override { return series_; }
  std::vector<HistoryPoint> points(const HistorySeries& series, std::size_t most) override {
    const std::vector<HistoryPoint>& all = points_[static_cast<std::size_t>(series.id)];
    const std::size_t count = std::min(most, all.size());
    return {all.end() - static_cast<std::ptrdiff_t>(count), all.end()};
  }
  std::vector<HistoryPoint> points_from(const HistorySeries& series, std::int64_t from,
                                        std::size_t most) override {
    std::vector<HistoryPoint> later;
    for (const HistoryPoint& point : points_[static_cast<std::size_t>(series.id)]) {
      if (point.time >= from && later.size() < most) later.push_back(point);
    }
    return later;
  }
  std::string variant(std::int64_t id) override { return variants_[static_cast<std::size_t>(id)]; }

  std::vector<HistoryAnchor> anchors() override { return anchors_; }
  void set_anchors(const std::vector<HistoryAnchor>& anchors) override {
    anchors_.insert(anchors_.end(), anchors.begin(), anchors.end());
  }
  std::vector<HistoryRename> renames() override { return {}; }
  void rename(const std::vector<HistoryRename>&) override {}

 private:
  std::int64_t variant_of(const std::string& text) {
    const auto [known, is_new] =
        variant_at_.try_emplace(text, static_cast<std::int64_t>(variants_.size()));
    if (is_new) variants_.push_back(text);
    return known->second;
  }

  std::int64_t next_run_ = 1;
  std::vector<HistoryRun> runs_;
  std::vector<HistorySeries> series_;
  std::vector<std::vector<HistoryPoint>> points_;
  std::map<std::pair<std::string, std::string>, std::int64_t> at_;
  std::set<std::int64_t> anchored_;
  std::vector<HistoryAnchor> anchors_;
  std::vector<std::string> variants_;
  std::map<std::string, std::int64_t> variant_at_;
};

}  // namespace moegauge
