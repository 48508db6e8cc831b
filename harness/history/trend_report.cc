#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "harness/history/trend.h"
#include "harness/history/utc.h"
#include "harness/judge/numbers.h"
#include "harness/judge/text_table.h"

namespace moegauge {
namespace {

using Json = nlohmann::ordered_json;
using RunsById = std::map<std::int64_t, const HistoryRun*>;

RunsById by_id(const std::vector<HistoryRun>& runs) {
  RunsById map;
  for (const HistoryRun& run : runs) map[run.id] = &run;
  return map;
}

constexpr std::size_t short_commit = 10;

std::string commit_of(const RunsById& runs, const HistoryPoint& point) {
  const auto run = runs.find(point.run);
  if (run == runs.end() || run->second->commit.empty()) return "-";
  return run->second->commit.substr(0, short_commit);
}

std::string number(double value, std::string (*format)(double)) {
  return std::isnan(value) ? "-" : format(value);
}

std::string signed_percent(double part) {
  const std::string text = format_percent(part);
  return part > 0 ? "+" + text : text;
}

std::string named_run(const RunsById& runs, const HistoryPoint& point) {
  return "run " + std::to_string(point.run) + " (" + utc_date(point.time) + ", commit " +
         commit_of(runs, point) + ")";
}

std::string level(const TrendChange& change, double value) {
  return change.of_latency() ? format_us(value) : format_error(value);
}

std::string sentence(const Trend& trend, const TrendChange& change, const RunsById& runs) {
  const bool up = change.after > change.before;
  std::string text = change.subject + (up ? " rose" : " fell");
  if (const auto size = change.size()) text += " by " + format_percent(std::abs(*size));
  text += ": " + level(change, change.before) + " in " + std::to_string(change.runs_before) +
          " runs to " + level(change, change.after) + " in " + std::to_string(change.runs_after) +
          ", between " + named_run(runs, trend.points[change.last_before]) + " and " +
          named_run(runs, trend.points[change.first_after]) + "; ";
  return text + (change.environment() ? "environment: neither kernel nor config changed there"
                                      : "the " + change.cause() + " changed there");
}

std::string marks(const Trend& trend, std::size_t at) {
  const HistoryPoint& point = trend.points[at];
  std::string text;
  const auto add = [&](const std::string& mark) { text += (text.empty() ? "" : ", ") + mark; };
  if (point.status != Status::ok) add(std::string(to_string(point.status)));
  if (point.suspect) add("suspect");
  if (point.held) add("held back");
  for (const TrendChange& change : trend.changes) {
    if (change.first_after != at) continue;
    const auto size = change.size();
    add(change.subject + (size ? " " + signed_percent(*size) : " from 0") + " (" + change.cause() +
        ")");
  }
  return text;
}

std::string points_table(const Trend& trend, const RunsById& runs, std::size_t shown) {
  TextTable table({Align::right, Align::left, Align::left, Align::right, Align::left, Align::right,
                   Align::right, Align::right, Align::left});
  table.add({"run", "time (UTC)", "commit", "median", "interval", "kernel", "worst token", "total",
             "changed here"});
  const std::size_t first = trend.points.size() > shown ? trend.points.size() - shown : 0;
  for (std::size_t i = first; i < trend.points.size(); ++i) {
    const HistoryPoint& p = trend.points[i];
    const std::string interval =
        std::isnan(p.ci_low) ? "-" : format_us(p.ci_low) + " to " + format_us(p.ci_high);
    const auto us = [](double value) { return format_us(value); };
    table.add({std::to_string(p.run), utc_text(p.time), commit_of(runs, p), number(p.median, us),
               interval, number(p.errors.implementation, format_error),
               number(p.errors.worst_implementation, format_error),
               number(p.errors.total, format_error), marks(trend, i)});
  }
  return table.str();
}

// JSON has no NaN and no infinity.
Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json point_json(const HistoryPoint& p, const RunsById& runs) {
  const auto run = runs.find(p.run);
  return {{"run", p.run},
          {"time", utc_text(p.time)},
          {"commit", run == runs.end() ? "" : run->second->commit},
          {"status", std::string(to_string(p.status))},
          {"suspect", p.suspect},
          {"unstable", p.unstable},
          {"held_back", p.held},
          {"kernel", p.kernel},
          {"config", p.config},
          {"median_us", finite_or_null(p.median)},
          {"ci_low_us", finite_or_null(p.ci_low)},
          {"ci_high_us", finite_or_null(p.ci_high)},
          {"within", finite_or_null(p.within)},
          {"error",
           {{"implementation",
             {{"relative_l2", finite_or_null(p.errors.implementation)},
              {"worst_token", finite_or_null(p.errors.worst_implementation)}}},
            {"quantization",
             {{"relative_l2", finite_or_null(p.errors.quantization)},
              {"worst_token", finite_or_null(p.errors.worst_quantization)}}},
            {"total",
             {{"relative_l2", finite_or_null(p.errors.total)},
              {"worst_token", finite_or_null(p.errors.worst_total)}}}}}};
}

}  // namespace

std::string trend_text(const Trend& trend, const std::vector<HistoryRun>& runs, std::size_t shown) {
  const RunsById known = by_id(runs);
  std::string text = trend.id + "\non " + trend.device + "\n";
  for (const std::string& name : trend.older_names) text += "was " + name + "\n";
  text += "\n" + points_table(trend, known, shown);
  const std::size_t count = trend.points.size();
  if (count > shown) {
    text += "the last " + std::to_string(shown) + " of " + std::to_string(count) +
            " runs; --points shows more\n";
  }
  text += "\n";
  for (const TrendChange& change : trend.changes) text += sentence(trend, change, known) + "\n";
  if (trend.changes.empty()) {
    text += "no change of level in " + std::to_string(count) + (count == 1 ? " run\n" : " runs\n");
  }
  const HistoryPoint& last = trend.points.back();
  if (trend.anchor && last.status == Status::ok && trend.anchor->median > 0) {
    text += "the last run against the anchor, " + named_run(known, *trend.anchor) + ": latency " +
            signed_percent(last.median / trend.anchor->median - 1) + "\n";
  }
  if (trend.vanished) {
    text += "gone: last seen in " + named_run(known, last) + ", absent from the " +
            std::to_string(trend.runs_since) + " runs of its suite since; if it was renamed, " +
            "moegauge history rename OLD NEW\n";
  }
  return text;
}

Json trend_json(const Trend& trend, const std::vector<HistoryRun>& runs) {
  const RunsById known = by_id(runs);
  Json json = {{"id", trend.id},
               {"device", trend.device},
               {"older_names", trend.older_names},
               {"vanished", trend.vanished},
               {"anchor", trend.anchor ? point_json(*trend.anchor, known) : Json(nullptr)},
               {"changes", Json::array()},
               {"points", Json::array()}};
  for (const TrendChange& change : trend.changes) {
    const auto size = change.size();
    json["changes"].push_back({{"subject", change.subject},
                               {"last_run_before", trend.points[change.last_before].run},
                               {"first_run_after", trend.points[change.first_after].run},
                               {"runs_before", change.runs_before},
                               {"runs_after", change.runs_after},
                               {"before", finite_or_null(change.before)},
                               {"after", finite_or_null(change.after)},
                               {"percent", size ? finite_or_null(100 * *size) : Json(nullptr)},
                               {"p", change.p},
                               {"cause", change.cause()}});
  }
  for (const HistoryPoint& point : trend.points) json["points"].push_back(point_json(point, known));
  return json;
}

}  // namespace moegauge
