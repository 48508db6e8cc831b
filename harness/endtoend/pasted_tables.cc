#include "harness/endtoend/pasted_tables.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "harness/endtoend/serving_columns.h"
#include "harness/json/nearest.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

using Cells = std::vector<std::string>;

class Table {
 public:
  Table(const std::vector<PastedLine>& lines, std::size_t& at, const PastedContext& context,
        RowsByPoint& by_point, std::vector<EndToEndRow>& rows)
      : lines_(lines),
        at_(at),
        context_(context),
        by_point_(by_point),
        rows_(rows),
        head_(cells_of(lines[at].text)) {}

  bool read() {
    if (head_.size() < 2) return false;
    const std::string first = lower_case(head_[0]);
    if (first == "tasks" || first == "groups") return lm_eval();
    if (first == "metric") return scores();
    static constexpr std::array begins = {"isl-osl", "isl/osl", "parallelism", "sequence",
                                          "concurrency"};
    return std::ranges::find(begins, first) != begins.end() && serving();
  }

 private:
  std::string place(std::int64_t line) const { return context_.file + ":" + std::to_string(line); }

  EndToEndRow row(const char* op, std::int64_t line, const char* tool) const {
    return {.op = op,
            .model = context_.model,
            .source = {.file = context_.file, .lines = {line}, .tool = tool}};
  }

  // Calls read(cells, line) for the rows under the head.
  template <typename Read>
  void each_row(Read read) {
    while (at_ + 1 < lines_.size()) {
      Cells cells = cells_of(lines_[at_ + 1].text);
      if (cells.empty()) break;
      const std::int64_t line = lines_[++at_].number;
      if (is_rule(cells)) continue;
      if (cells.size() != head_.size()) {
        throw InputError(place(line),
                         "a row of " + std::to_string(cells.size()) + " cells under a head of " +
                             std::to_string(head_.size()),
                         "as many cells as the head has");
      }
      read(cells, line);
    }
  }

  // A blank task or version continues the one above it; so does a blank filter.
  bool lm_eval() {
    Cells above(head_.size());
    each_row([&](Cells& cells, std::int64_t line) {
      EndToEndRow one = row("eval", line, "lm-evaluation-harness, its printed table");
      for (std::size_t i = 0; i < head_.size(); ++i) {
        if (i < 3 && cells[i].empty()) cells[i] = above[i];
        above[i] = cells[i];
        put_lm_eval_cell(cells, i, line, one);
      }
      if (!context_.arguments.empty()) one.unknown["arguments"] = context_.arguments;
      if (one.number("value")) rows_.push_back(std::move(one));
    });
    return true;
  }

  void put_lm_eval_cell(const Cells& cells, std::size_t i, std::int64_t line,
                        EndToEndRow& one) const {
    struct Column {
      const char* head;
      const char* label;
    };
    static constexpr std::array columns = {
        Column{"tasks", "task"},    Column{"groups", "task"},   Column{"version", "version"},
        Column{"filter", "filter"}, Column{"n-shot", "n_shot"}, Column{"metric", "metric"}};
    const std::string head = lower_case(head_[i]);
    for (const Column& column : columns)
      if (head == column.head) one.labels[column.label] = cells[i];
    if (cells[i] == "↓") one.lower_is_better = true;
    if (head != "value" && head != "stderr") return;
    if (const auto value = number_or_absent(cells[i], "a score or its standard error", place(line)))
      one.numbers[head] = *value;
  }

  void put_point(const Cells& cells, std::int64_t line, EndToEndRow& one) const {
    for (std::size_t i = 0; i < head_.size(); ++i) {
      if (const char* label = point_label(head_[i])) one.labels[label] = cells[i];
      if (is_model(head_[i])) one.model = cells[i];
      if (!is_gpus(head_[i])) continue;
      if (const auto gpus = number_or_absent(cells[i], "a number of GPUs", place(line)))
        one.numbers["gpus"] = *gpus;
    }
  }

  // Another number of a point that an earlier table of this text began is added to its row.
  void add_or_merge(EndToEndRow one) {
    std::vector<std::size_t>& alike = by_point_[one.point() + "\n" + one.variant()];
    for (const std::size_t at : alike) {
      EndToEndRow& known = rows_[at];
      const bool new_numbers = std::ranges::none_of(one.numbers, [&](const auto& number) {
        const auto there = known.number(number.first);
        return there && !(number.first == "gpus" && *there == number.second);
      });
      if (!new_numbers) continue;
      known.numbers.merge(one.numbers);
      known.source.lines.push_back(one.source.lines.front());
      return;
    }
    alike.push_back(rows_.size());
    rows_.push_back(std::move(one));
  }

  // "GSM8K Accuracy" and "exact_match, strict-match" as lm-evaluation-harness calls them.
  void put_eval_labels(const std::string& cell, EndToEndRow& one) const {
    std::string task = lower_case(context_.title);
    if (const auto end = task.find(" accuracy"); end != std::string::npos) task.erase(end);
    if (!task.empty()) one.labels["task"] = task;
    const auto comma = cell.find(',');
    one.labels["metric"] = trimmed(cell.substr(0, comma));
    if (comma != std::string::npos) one.labels["filter"] = trimmed(cell.substr(comma + 1));
  }

  // First column the metric, a column per variant. Averages are no measurement.
  bool scores() {
    each_row([&](const Cells& cells, std::int64_t line) {
      if (lower_case(cells[0]) == "average") return;
      for (std::size_t i = 1; i < head_.size(); ++i) {
        const auto value = number_or_absent(cells[i], "a number for " + head_[i], place(line));
        if (!value) continue;
        EndToEndRow one = row("eval", line, "a pasted table");
        put_eval_labels(cells[0], one);
        one.labels["variant"] = head_[i];
        one.numbers["value"] = *value;
        add_or_merge(std::move(one));
      }
    });
    return true;
  }

  // Columns that name the point and columns of numbers, in any order.
  bool serving() {
    const std::vector<NumberColumn> columns =
        number_columns(head_, context_.title, place(lines_[at_].number));
    each_row([&](const Cells& cells, std::int64_t line) {
      if (lower_case(cells[0]) == "average") return;
      EndToEndRow point = row("serve", line, "a pasted table");
      put_point(cells, line, point);
      std::vector<EndToEndRow> variants;
      std::map<std::string, std::size_t> known;
      for (const NumberColumn& column : columns) {
        const std::string& cell = cells[column.at];
        if (cell.ends_with('%'))
          throw InputError(place(line), in_quotes(cell) + " is a share", column.name);
        const auto value = number_or_absent(cell, column.name, place(line));
        if (!value) continue;
        const auto [at, is_new] = known.emplace(column.variant, variants.size());
        if (is_new) {
          variants.push_back(point);
          if (!column.variant.empty()) variants.back().labels["variant"] = column.variant;
        }
        variants[at->second].numbers[column.name] = *value;
      }
      for (EndToEndRow& one : variants) add_or_merge(std::move(one));
    });
    return true;
  }

  const std::vector<PastedLine>& lines_;
  std::size_t& at_;
  const PastedContext& context_;
  RowsByPoint& by_point_;
  std::vector<EndToEndRow>& rows_;
  const Cells head_;
};

}  // namespace

bool read_table(const std::vector<PastedLine>& lines, std::size_t& at, const PastedContext& context,
                RowsByPoint& by_point, std::vector<EndToEndRow>& rows) {
  return Table(lines, at, context, by_point, rows).read();
}

}  // namespace moegauge
