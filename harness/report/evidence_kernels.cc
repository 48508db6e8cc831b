// Sections of an evidence page on cases of layers.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "harness/judge/numbers.h"
#include "harness/judge/report_parts.h"
#include "harness/report/evidence_parts.h"

namespace moegauge {
namespace {

std::string text_of(const Row& row, const char* key) { return row.value(key, std::string()); }

std::string number_of(const Row& row, const char* key, std::string (*shown)(double)) {
  const auto found = row.find(key);
  return found == row.end() ? "-" : shown(found->get<double>());
}

std::string us(double value) { return format_us(value); }

// All judged cases of all files, worst first.
std::vector<const CaseVerdict*> all_verdicts(const std::vector<Judgement>& judgements) {
  std::vector<const CaseVerdict*> all;
  for (const Judgement& judgement : judgements) {
    const auto one = worst_first(judgement);
    all.insert(all.end(), one.begin(), one.end());
  }
  std::ranges::stable_sort(all, std::greater(), &CaseVerdict::verdict);
  return all;
}

// Batch sizes of one layer and backend, default and tuned side by side.
struct LatencyTable {
  std::map<std::int64_t, std::map<std::string, const Row*>> rows = {};  // by tokens and config
  std::map<std::int64_t, const Row*> tuned_over_default = {};
  double worst = HUGE_VAL;  // speed-up
};

std::string speedup_cell(const Row& pair) {
  std::string text = format_ratio(pair.at("speedup").get<double>());
  if (pair.contains("low"))
    text += " " + format_interval(pair.at("low").get<double>(), pair.at("high").get<double>());
  return text;
}

std::string block_of(const std::string& title, const LatencyTable& table) {
  constexpr std::size_t most_configs = 6;
  std::vector<std::string> configs, heads = {">M"};
  for (const auto& [tokens, by_config] : table.rows) {
    for (const auto& [config, row] : by_config)
      if (std::ranges::find(configs, config) == configs.end()) configs.push_back(config);
  }
  configs.resize(std::min(configs.size(), most_configs));
  for (const std::string& config : configs) heads.push_back(">" + evidence_cell(config));
  const bool pairs = !table.tuned_over_default.empty();
  if (pairs) heads.push_back(">default/tuned");
  heads.push_back(">of the floor's speed");
  std::string text = "**" + evidence_cell(title) + "**\n\n" + table_head(heads);
  for (const auto& [tokens, by_config] : table.rows) {
    std::vector<std::string> cells = {std::to_string(tokens)};
    double fraction = 0;
    for (const std::string& config : configs) {
      const auto found = by_config.find(config);
      cells.push_back(found == by_config.end() ? "-" : number_of(*found->second, "median", us));
      if (found != by_config.end())
        fraction = std::max(fraction, found->second->value("fraction", 0.0));
    }
    if (pairs) {
      const auto pair = table.tuned_over_default.find(tokens);
      cells.push_back(pair == table.tuned_over_default.end() ? "-" : speedup_cell(*pair->second));
    }
    cells.push_back(fraction > 0 ? std::to_string(std::lround(100 * fraction)) + "%" : "-");
    text += table_line(cells);
  }
  return text + "\n";
}

}  // namespace

EvidenceSection verdict_section(const std::vector<Judgement>& judgements) {
  EvidenceSection section{.title = "Verdicts that need somebody",
                          .head = table_head({"verdict", "case", "why"})};
  std::map<Verdict, std::size_t, std::greater<>> counts;
  for (const CaseVerdict* verdict : all_verdicts(judgements)) {
    ++counts[verdict->verdict];
    // What improved stands in the tables below.
    if (!needs_person(*verdict) ||
        (verdict->verdict == Verdict::improved && verdict->changes.empty()))
      continue;
    std::string why = verdict->sentence();
    if (verdict->verdict <= Verdict::improved && !verdict->changes.empty())
      why = "changed: " + verdict->changes.front();
    section.blocks.push_back(table_line({"**" + std::string(to_string(verdict->verdict)) + "**",
                                         evidence_code(verdict->id), evidence_cell(why)}));
  }
  for (const auto& [verdict, count] : counts) {
    section.intro += (section.intro.empty() ? "" : ", ") + std::to_string(count) + " " +
                     std::string(to_string(verdict));
  }
  if (!section.intro.empty()) section.intro += ".";
  return section;
}

EvidenceSection latency_section(const ReportRows& rows) {
  EvidenceSection section{.title = "Latency per batch size", .open = 3, .noun = "tables"};
  std::map<std::string, LatencyTable> tables;
  const auto title_of = [](const Row& row) {
    return text_of(row, "panel") + " · " + text_of(row, "backend") + " · " + text_of(row, "cache") +
           " · " + text_of(row, "file");
  };
  for (const Row& row : rows.cases) {
    if (!row.contains("median")) continue;
    LatencyTable& table = tables[title_of(row)];
    table.rows[row.at("tokens").get<std::int64_t>()].emplace(text_of(row, "config"), &row);
  }
  for (const Row& row : rows.pairs) {
    if (text_of(row, "kind") != "tuned over default") continue;
    const auto found = tables.find(title_of(row));
    if (found == tables.end()) continue;
    found->second.tuned_over_default.emplace(row.at("tokens").get<std::int64_t>(), &row);
    found->second.worst = std::min(found->second.worst, row.at("speedup").get<double>());
  }
  std::vector<const std::pair<const std::string, LatencyTable>*> order;
  for (const auto& table : tables) order.push_back(&table);
  std::ranges::stable_sort(order, {}, [](const auto* table) { return table->second.worst; });
  for (const auto* table : order) section.blocks.push_back(block_of(table->first, table->second));
  if (!section.blocks.empty()) {
    section.intro =
        "Medians of one call. Above 1, tuning helped; the interval is that of pairs measured in "
        "alternation. Tables in which it helped least come first.";
  }
  return section;
}

EvidenceSection kernel_section(const std::vector<Judgement>& judgements) {
  EvidenceSection section{
      .title = "Kernels against the baseline",
      .head = table_head({"verdict", ">result", ">baseline", ">ratio", "interval", "case"})};
  for (const CaseVerdict* verdict : all_verdicts(judgements)) {
    if (!verdict->latency) continue;
    const LatencyCells cells = latency_cells(*verdict);
    section.blocks.push_back(
        table_line({std::string(to_string(verdict->verdict)), cells.result, cells.baseline,
                    cells.ratio, cells.interval, evidence_code(verdict->id)}));
  }
  return section;
}

EvidenceSection error_section(const ReportRows& rows) {
  struct Worst {
    std::size_t cases = 0;
    double implementation = 0, worst_token = 0, quantization = 0, total = 0, of_limit = -1;
    std::string limit = "-";
  };
  std::map<std::string, Worst> all;
  for (const Row& row : rows.cases) {
    if (!row.contains("implementation")) continue;
    Worst& worst =
        all[text_of(row, "scheme") + "\n" + text_of(row, "backend") + "\n" + text_of(row, "op")];
    ++worst.cases;
    const double error = row.value("implementation", 0.0);
    worst.implementation = std::max(worst.implementation, error);
    worst.worst_token = std::max(worst.worst_token, row.value("worst_token", 0.0));
    worst.quantization = std::max(worst.quantization, row.value("quantization", 0.0));
    worst.total = std::max(worst.total, row.value("total", 0.0));
    const double limit = row.value("limit_implementation", 0.0);
    const double of_limit = limit > 0 ? error / limit : error > 0 ? HUGE_VAL : 0;
    if (row.contains("limit_implementation") && of_limit > worst.of_limit) {
      worst.of_limit = of_limit;
      worst.limit = format_error(limit);
    }
  }
  EvidenceSection section{.title = "Errors",
                          .head = table_head({"scheme", "backend", "op", ">cases", ">kernel",
                                              ">its limit", ">worst token", ">format", ">total"})};
  std::vector<std::pair<std::string, Worst>> order(all.begin(), all.end());
  std::ranges::stable_sort(order, std::greater(),
                           [](const auto& one) { return one.second.of_limit; });
  for (const auto& [key, worst] : order) {
    const auto first = key.find('\n'), second = key.rfind('\n');
    section.blocks.push_back(table_line(
        {evidence_cell(key.substr(0, first)),
         evidence_cell(key.substr(first + 1, second - first - 1)),
         evidence_cell(key.substr(second + 1)), std::to_string(worst.cases),
         format_error(worst.implementation), worst.limit, format_error(worst.worst_token),
         format_error(worst.quantization), format_error(worst.total)}));
  }
  if (!section.blocks.empty()) {
    section.intro =
        "Relative L2, the worst of the cases: *kernel* is what the kernel adds to exact arithmetic "
        "on the same quantised operands, *format* what the number format costs, *total* both.";
  }
  return section;
}

EvidenceSection status_section(const ReportRows& rows) {
  std::map<std::pair<std::string, std::string>, std::pair<std::size_t, std::string>> groups;
  for (const Row& row : rows.cases) {
    if (text_of(row, "status") == "ok") continue;
    auto& group = groups[{text_of(row, "status"), text_of(row, "reason")}];
    if (++group.first == 1) group.second = text_of(row, "id");
  }
  EvidenceSection section{.title = "Cases without a latency",
                          .head = table_head({"status", ">cases", "reason", "first of them"})};
  std::vector<const decltype(groups)::value_type*> order;
  for (const auto& group : groups) order.push_back(&group);
  std::ranges::stable_sort(order, std::greater(),
                           [](const auto* group) { return group->second.first; });
  for (const auto* group : order) {
    section.blocks.push_back(
        table_line({evidence_cell(group->first.first), std::to_string(group->second.first),
                    evidence_cell(group->first.second), evidence_code(group->second.second)}));
  }
  return section;
}

}  // namespace moegauge
