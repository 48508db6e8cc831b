#include "harness/endtoend/pasted_tables.h"

#include <algorithm>
#include <array>
#include <string_view>

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
    if (first == "metric") return per_variant("eval");
    if (first == "isl-osl" || first == "isl/osl") return per_variant("serve");
    if (first == "parallelism" || first == "sequence") return throughput_per_gpu();
    return false;
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

  std::string serving_number() const {
    struct Title {
      const char* part;
      const char* name;
    };
    static constexpr std::array titles = {Title{"TTFT", "ttft_ms.mean"},
                                          Title{"TPOT", "tpot_ms.mean"},
                                          Title{"ITL", "itl_ms.mean"}, Title{"E2E", "e2e_ms.mean"}};
    for (const Title& title : titles)
      if (context_.title.find(title.part) != std::string::npos) return title.name;
    throw InputError(
        place(lines_[at_].number),
        "the table is of " + (context_.title.empty() ? "nothing that is named" : context_.title),
        "a line TTFT (ms), TPOT (ms), ITL (ms) or E2E Latency (ms) above it");
  }

  // Another number of a point that an earlier table of this text began is added to its row.
  void add_or_merge(EndToEndRow one) {
    std::vector<std::size_t>& alike = by_point_[one.point() + "\n" + one.variant()];
    for (const std::size_t at : alike) {
      EndToEndRow& known = rows_[at];
      const bool new_numbers = std::ranges::none_of(
          one.numbers, [&](const auto& number) { return known.numbers.contains(number.first); });
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

  // First column the point or metric, a column per variant. Averages are no measurement.
  bool per_variant(const char* op) {
    const bool eval = std::string_view(op) == "eval";
    const std::string name = eval ? "value" : serving_number();
    each_row([&](const Cells& cells, std::int64_t line) {
      if (lower_case(cells[0]) == "average") return;
      for (std::size_t i = 1; i < head_.size(); ++i) {
        const auto value = number_or_absent(cells[i], "a number for " + head_[i], place(line));
        if (!value) continue;
        EndToEndRow one = row(op, line, "a pasted table");
        if (eval) {
          put_eval_labels(cells[0], one);
        } else {
          one.labels["input_output"] = cells[0];
        }
        one.labels["variant"] = head_[i];
        one.numbers[name] = *value;
        add_or_merge(std::move(one));
      }
    });
    return true;
  }

  // Columns that name the point, then total tokens per second and GPU: one, or one per variant.
  bool throughput_per_gpu() {
    each_row([&](const Cells& cells, std::int64_t line) {
      std::map<std::string, std::string> labels;
      for (std::size_t i = 0; i < head_.size(); ++i) {
        const std::string head = lower_case(head_[i]);
        if (head == "sequence") labels["input_output"] = cells[i];
        if (head == "parallelism") labels["parallelism"] = cells[i];
        if (head == "concurrency") labels["concurrency"] = cells[i];
      }
      for (std::size_t i = labels.size(); i < head_.size(); ++i) {
        if (lower_case(head_[i]) == "change") continue;  // it follows from the others
        const auto value =
            number_or_absent(cells[i], "total tokens per second and GPU", place(line));
        if (!value) continue;
        EndToEndRow one = row("serve", line, "a pasted table");
        one.labels = labels;
        if (head_[i].find("tok/s") == std::string::npos) one.labels["variant"] = head_[i];
        one.numbers["total_tokens_per_s_per_gpu"] = *value;
        rows_.push_back(std::move(one));
      }
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
