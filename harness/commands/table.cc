#include "harness/commands/table.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace moegauge {
namespace {

constexpr std::size_t kColumns = 100;

std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));
std::string format(const char* pattern, ...) {
  char text[512];
  std::va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

// What one table is about: everything but tokens and config.
std::string heading(const CaseRecord& record) {
  const CaseCoordinates& c = record.coordinates;
  const std::string op = c.op == CaseCoordinates{}.op ? "" : op_label(c) + "  ";
  return op + c.model + "  tp" + std::to_string(c.tp) + ".ep" + std::to_string(c.ep) + "  " +
         c.scheme + "  " + record.backend + "  (" + c.routing + ", " + c.inputs + ", " + c.cache +
         ", " + c.launch + ")";
}

// Rivals of one batch size.
struct Row {
  std::vector<const CaseRecord*> cases;
  const CaseRecord* with_config(const std::string& config) const {
    const auto found = std::ranges::find_if(
        cases, [&](const CaseRecord* record) { return record->coordinates.config == config; });
    return found == cases.end() ? nullptr : *found;
  }
};

struct Table {
  std::string heading;
  std::map<std::int64_t, Row> rows;
};

std::vector<Table> tables_of(const Result& result) {
  std::vector<Table> tables;
  for (const CaseRecord& record : result.cases) {
    if (!record.measured()) continue;
    const std::string name = heading(record);
    auto table = std::ranges::find(tables, name, &Table::heading);
    if (table == tables.end()) table = tables.insert(tables.end(), Table{name, {}});
    table->rows[record.coordinates.tokens].cases.push_back(&record);
  }
  return tables;
}

// Latency to four digits with the marks that the legend explains.
std::string latency_text(const CaseRecord* record) {
  if (record == nullptr) return "-";
  const Measured& measured = *record->measured();
  const double us = measured.latency.median;
  const int decimals = us < 10 ? 3 : us < 100 ? 2 : us < 1000 ? 1 : 0;
  return format("%.*f%s%s%s", decimals, us, measured.unstable ? "~" : "",
                measured.suspect ? "?" : "", measured.extrapolated ? "x" : "");
}

// One kernel, timed twice.
bool same_config(const CaseRecord& a, const CaseRecord& b) {
  return !a.config.hash.empty() && a.config.hash == b.config.hash;
}

// Latency of `a` over that of `b`, with its interval.
std::string ratio_text(const Result& result, const CaseRecord* a, const CaseRecord* b) {
  if (a == nullptr || b == nullptr) return "-";
  if (same_config(*a, *b)) return "same config";
  for (const Comparison& c : result.comparisons) {
    if (c.a == a->id() && c.b == b->id()) {
      return format("%.3f [%.3f, %.3f]", c.ratio, c.ci_low, c.ci_high);
    }
    if (c.a == b->id() && c.b == a->id()) {
      return format("%.3f [%.3f, %.3f]", 1 / c.ratio, 1 / c.ci_high, 1 / c.ci_low);
    }
  }
  return format("%.3f (not interleaved)",
                a->measured()->latency.median / b->measured()->latency.median);
}

// The worst of the row's cases: none may hide behind another.
double worst_error(const Row& row, ErrorMetrics ErrorReport::*which) {
  double worst = 0;
  for (const CaseRecord* record : row.cases) {
    const Measured* measured = record->measured();
    if (measured != nullptr) worst = std::max(worst, (measured->check.error.*which).relative_l2);
  }
  return worst;
}

std::string row_text(const Result& result, std::int64_t tokens, const Row& row) {
  const CaseRecord* base = row.with_config("default");
  const CaseRecord* tuned = row.with_config("tuned");
  const CaseRecord* fastest = *std::ranges::min_element(
      row.cases, {}, [](const CaseRecord* record) { return record->measured()->latency.median; });
  std::string text = format(
      "%8lld %11s %11s  %-22s %9.2g %9.2g %9.2g %7.0f%%\n", static_cast<long long>(tokens),
      latency_text(base).c_str(), latency_text(tuned).c_str(),
      ratio_text(result, base, tuned).c_str(), worst_error(row, &ErrorReport::implementation),
      worst_error(row, &ErrorReport::quantization), worst_error(row, &ErrorReport::total),
      100 * fastest->measured()->roofline.fraction);
  for (const CaseRecord* record : row.cases) {
    if (record == base || record == tuned) continue;
    text += format("%8s %11s us  ", "", latency_text(record).c_str()) + record->coordinates.config;
    if (base != nullptr) text += "  default/this " + ratio_text(result, base, record);
    text += '\n';
  }
  return text;
}

// Breaks at spaces so that no line passes kColumns where that can be helped.
std::string wrapped(const std::string& text, const std::string& indent) {
  std::string out, line = indent;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (line.size() > indent.size() && line.size() + 1 + word.size() > kColumns) {
      out += line + '\n';
      line = indent;
    }
    line += (line.size() > indent.size() ? " " : "") + word;
    begin = end + 1;
  }
  return out + line + '\n';
}

std::string not_ok_text(const Result& result) {
  using Key = std::pair<std::string, std::string>;  // status and reason
  std::vector<std::pair<Key, std::vector<std::string>>> kinds;
  for (const CaseRecord& record : result.cases) {
    const auto* unmeasured = std::get_if<Unmeasured>(&record.outcome);
    if (unmeasured == nullptr) continue;
    const Key key(to_string(unmeasured->status), unmeasured->reason);
    auto kind = std::ranges::find(kinds, key, &decltype(kinds)::value_type::first);
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {key, {}});
    kind->second.push_back(record.id());
  }
  std::string text;
  constexpr std::size_t shown = 4;
  for (const auto& [key, ids] : kinds) {
    text += wrapped(key.first + ", " + std::to_string(ids.size()) +
                        (ids.size() == 1 ? " case: " : " cases: ") + key.second,
                    "");
    for (std::size_t i = 0; i < std::min(shown, ids.size()); ++i) text += "    " + ids[i] + '\n';
    if (ids.size() > shown) text += "    and " + std::to_string(ids.size() - shown) + " more\n";
  }
  return text;
}

std::string legend(const Result& result) {
  bool unstable = false, suspect = false, extrapolated = false;
  for (const CaseRecord& record : result.cases) {
    const Measured* measured = record.measured();
    if (measured == nullptr) continue;
    unstable |= measured->unstable;
    suspect |= measured->suspect;
    extrapolated |= measured->extrapolated;
  }
  std::string text;
  if (unstable) text += "~ the median's 95% interval is wider than +-1%\n";
  if (suspect) text += "? faster than this machine's measured ceilings allow: suspect\n";
  if (extrapolated) text += "x the tuned file has no entry near this batch size\n";
  return text;
}

}  // namespace

std::string render_table(const Result& result) {
  std::string text;
  for (const Table& table : tables_of(result)) {
    text += table.heading + '\n';
    text += format("%8s %11s %11s  %-22s %9s %9s %9s %8s\n", "M", "default us", "tuned us",
                   "default/tuned [95% CI]", "kernel", "format", "total", "of floor");
    for (const auto& [tokens, row] : table.rows) text += row_text(result, tokens, row);
    text += '\n';
  }
  if (!text.empty()) {
    text +=
        "kernel, format, total: relative L2 errors (kernel against exact arithmetic on the same\n"
        "operands; that against unquantised; kernel against unquantised), the worst of a row\n";
  }
  text += legend(result);
  const std::string not_ok = not_ok_text(result);
  if (!not_ok.empty()) text += (text.empty() ? "" : "\n") + not_ok;
  return text;
}

}  // namespace moegauge
