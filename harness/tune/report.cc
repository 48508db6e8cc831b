#include "harness/tune/report.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "harness/judge/escape.h"
#include "harness/judge/numbers.h"
#include "harness/judge/text_table.h"
#include "harness/measure/summary.h"

namespace moegauge {
namespace {

using Values = std::map<std::string, std::int64_t>;

std::string percent(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f%%", 100 * fraction);
  return text;
}

std::string plain_us(const CaseRecord& record) {
  if (record.measured() == nullptr) return std::string(to_string(record.status()));
  std::string text = format_us(record.measured()->latency.median);
  return text.substr(0, text.find(' '));
}

std::string error_of(const CaseRecord& record) {
  if (record.measured() == nullptr) return "";
  return format_error(record.measured()->check.error.implementation.relative_l2);
}

// "num_stages=4": what differs from `other`; "same" where nothing does.
std::string differing(const Values& values, const Values& other) {
  std::string text;
  for (const auto& [key, value] : values) {
    const auto found = other.find(key);
    if (found != other.end() && found->second == value) continue;
    text += (text.empty() ? "" : " ") + key + "=" + std::to_string(value);
  }
  return text.empty() ? "same" : text;
}

// Time of the tuned config over the default's, less one, with its interval.
struct TimeChange {
  double change = 0, low = 0, high = 0;
};
std::optional<TimeChange> time_change(const ReadBack& pair) {
  const Measured *standard = pair.standard.measured(), *tuned = pair.tuned.measured();
  if (standard == nullptr || tuned == nullptr) return std::nullopt;
  const auto &a = tuned->latency.samples, &b = standard->latency.samples;
  if (a.size() != b.size() || a.size() < 2 || standard->latency.min <= 0) return std::nullopt;
  const PairedRatio ratio = paired_ratio(a, b);
  return TimeChange{ratio.ratio - 1, ratio.low - 1, ratio.high - 1};
}

std::string code(const std::string& text) { return markdown_code(text, MarkdownPlace::table_cell); }

std::string short_config(const std::string& coordinate) {
  std::string text = coordinate;
  std::erase_if(text, [](char c) { return c == '"' || c == '{' || c == '}'; });
  std::ranges::replace(text, ':', '=');
  std::ranges::replace(text, ',', ' ');
  return text;
}

}  // namespace

std::string pull_request_table(const TuneOutcome& outcome) {
  std::string text =
      "| M | default us | tuned us | change | 98% interval | error before | error after | default "
      "config | tuned config |\n|---:|---:|---:|---:|---|---:|---:|---|---|\n";
  std::size_t rows = 0;
  for (const auto& [tokens, pair] : outcome.read_back) {
    if (!outcome.table.entries.contains(tokens)) continue;
    const auto change = time_change(pair);
    const Values &standard = pair.standard.config.values, &tuned = pair.tuned.config.values;
    text += "| " + std::to_string(tokens) + " | " + plain_us(pair.standard) + " | " +
            plain_us(pair.tuned) + " | " + (change ? percent(change->change) : "-") + " | " +
            (change ? "[" + percent(change->low) + ", " + percent(change->high) + "]" : "-") +
            " | " + error_of(pair.standard) + " | " + error_of(pair.tuned) + " | " +
            code(differing(standard, tuned)) + " | " + code(differing(tuned, standard)) + " |\n";
    ++rows;
  }
  return rows == 0 ? "" : text;
}

std::string decision_list(const TuneOutcome& outcome) {
  TextTable table({Align::right, Align::left, Align::left});
  for (const KeyDecision& d : outcome.decisions) {
    table.add({"M=" + std::to_string(d.tokens), std::string(to_string(d.verdict)), d.reason});
  }
  std::string text = table.str();
  for (const KeyVerdict verdict : {KeyVerdict::added, KeyVerdict::changed, KeyVerdict::kept,
                                   KeyVerdict::left, KeyVerdict::unfinished}) {
    std::string keys;
    for (const KeyDecision& d : outcome.decisions) {
      if (d.verdict == verdict) keys += (keys.empty() ? "" : ", ") + std::to_string(d.tokens);
    }
    if (!keys.empty()) text += std::string(to_string(verdict)) + ": " + keys + "\n";
  }
  return text;
}

std::string dropped_list(const TuneOutcome& outcome) {
  struct DroppedConfig {
    std::set<std::int64_t> tokens;
    std::string reason;
  };
  std::map<std::string, std::map<std::string, DroppedConfig>> by_status;
  std::map<std::string, std::size_t> counts;
  for (const CaseRecord& record : outcome.dropped) {
    const std::string status(to_string(record.status()));
    ++counts[status];
    DroppedConfig& config = by_status[status][short_config(record.coordinates.config)];
    config.tokens.insert(record.coordinates.tokens);
    if (config.reason.empty()) config.reason = std::get<Unmeasured>(record.outcome).reason;
  }
  std::string text;
  for (const auto& [status, configs] : by_status) {
    text += std::to_string(counts[status]) + " " + status + ":\n";
    for (const auto& [config, what] : configs) {
      std::string tokens;
      for (const std::int64_t m : what.tokens)
        tokens += (tokens.empty() ? "" : ",") + std::to_string(m);
      text += "  " + config + " at M=" + tokens + ": " + what.reason + "\n";
    }
  }
  return text;
}

}  // namespace moegauge
