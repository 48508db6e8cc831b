#include <array>
#include <charconv>
#include <optional>
#include <regex>
#include <sstream>
#include <system_error>

#include "harness/endtoend/end_to_end.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

struct Line {
  std::string text;
  int number;
};

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::optional<double> number_in(std::string text) {
  text = trimmed(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Cells of a Markdown table's line, or of one with tabs; nothing for other lines.
std::vector<std::string> cells_of(const std::string& line) {
  std::string text = trimmed(line);
  char between = '\t';
  if (text.starts_with('|')) {
    between = '|';
    text = text.substr(1, text.size() - (text.ends_with('|') && text.size() > 1 ? 2 : 1));
  } else if (line.find('\t') == std::string::npos) {
    return {};
  } else {
    text = line;  // a blank first cell matters
  }
  std::vector<std::string> cells;
  std::stringstream stream(text);
  for (std::string cell; std::getline(stream, cell, between);) cells.push_back(trimmed(cell));
  return cells;
}

struct KnownLine {
  const char* text;
  const char* name;
};
// Lines of a serving block, by their beginning; "Mean TTFT (ms)" and its kin are read by pattern.
constexpr std::array<KnownLine, 6> block_lines = {
    {{"Request throughput", "requests_per_s"},
     {"Output token throughput", "output_tokens_per_s"},
     {"Total Token throughput", "total_tokens_per_s"},
     {"Benchmark duration", "duration_s"},
     {"Successful requests", "requests"},
     {"Total input tokens", "input_tokens"}}};

class Reader {
 public:
  Reader(const std::string& text, std::string where) : where_(std::move(where)) {
    std::stringstream stream(text);
    int number = 0;
    for (std::string line; std::getline(stream, line);) lines_.push_back({line, ++number});
  }

  std::vector<EndToEndRow> read() {
    for (at_ = 0; at_ < lines_.size(); ++at_) {
      const std::string line = trimmed(lines_[at_].text);
      if (line.empty()) continue;
      if (serving_block(line) || throughput(line) || progress(line) || model_line(line) ||
          table(lines_[at_].text))
        continue;
      if (cells_of(lines_[at_].text).empty()) heading(line);
    }
    if (rows_.empty()) {
      throw InputError(
          where_, "nothing in it is a serving or accuracy result",
          "a serving block, Throughput: lines, progress lines, or a table is expected");
    }
    return std::move(rows_);
  }

 private:
  EndToEndRow& add(const char* op, int line) {
    rows_.push_back({.op = op, .model = model_, .source = where_ + ":" + std::to_string(line)});
    return rows_.back();
  }

  bool serving_block(const std::string& line) {
    if (line.find("Serving Benchmark Result") == std::string::npos) return false;
    EndToEndRow& row = add("serve", lines_[at_].number);
    static const std::regex timing(R"((Mean|Median|P99) (TTFT|TPOT|ITL|E2EL) \(ms\):\s*(\S+))");
    while (++at_ < lines_.size()) {
      const std::string text = trimmed(lines_[at_].text);
      if (text.find_first_not_of('=') == std::string::npos && !text.empty()) break;
      std::smatch match;
      const auto colon = text.find(':');
      if (std::regex_match(text, match, timing)) {
        std::string name = match[2] == "E2EL" ? "e2e" : match[2].str(), kind = match[1];
        for (std::string* word : {&name, &kind})
          for (char& c : *word) c = static_cast<char>(std::tolower(c));
        if (const auto value = number_in(match[3])) row.numbers[name + "_ms." + kind] = *value;
      } else if (colon != std::string::npos) {
        const auto value = number_in(text.substr(colon + 1));
        if (value) keep_block_line(row, text.substr(0, colon), *value);
      }
    }
    return true;
  }

  static void keep_block_line(EndToEndRow& row, const std::string& title, double value) {
    for (const KnownLine& known : block_lines) {
      if (!title.starts_with(known.text)) continue;
      row.numbers[known.name] = value;
      return;
    }
    row.unknown[title] = value;
  }

  bool throughput(const std::string& line) {
    static const std::regex pattern(
        R"(Throughput: (\S+) requests/s, (\S+) total tokens/s, (\S+) output tokens/s)");
    std::smatch match;
    if (!std::regex_search(line, match, pattern)) return false;
    EndToEndRow& row = add("serve", lines_[at_].number);
    const std::array names = {"requests_per_s", "total_tokens_per_s", "output_tokens_per_s"};
    for (std::size_t i = 0; i < names.size(); ++i)
      if (const auto value = number_in(match[i + 1])) row.numbers[names[i]] = *value;
    return true;
  }

  bool progress(const std::string& line) {
    static const std::regex pattern(
        R"(Processed prompts: 100%.*\| *(\d+)/\d+ \[[^,]*, *([\d.]+)it/s, est\. speed input: ([\d.]+) toks/s, output: ([\d.]+) toks/s)");
    std::smatch match;
    if (!std::regex_search(line, match, pattern)) return false;
    EndToEndRow& row = add("serve", lines_[at_].number);
    const std::array names = {"requests", "requests_per_s", "input_tokens_per_s",
                              "output_tokens_per_s"};
    for (std::size_t i = 0; i < names.size(); ++i)
      if (const auto value = number_in(match[i + 1])) row.numbers[names[i]] = *value;
    // The progress line stands above the line that names the model.
    pending_ = rows_.size();
    return true;
  }

  // "vllm (pretrained=NAME,...), gen_kwargs: ..., num_fewshot: 5, ..."
  bool model_line(const std::string& line) {
    static const std::regex pattern(R"(\(pretrained=([^,)]+).*\), gen_kwargs:)");
    std::smatch match;
    if (!std::regex_search(line, match, pattern)) return false;
    model_ = match[1];
    arguments_ = line;
    if (pending_ == rows_.size() && pending_ > 0 && rows_.back().op == "serve")
      rows_.back().model = model_;
    pending_ = 0;
    return true;
  }

  // Text between tables: a model's name holds a slash, anything else is the number's title.
  void heading(const std::string& line) {
    const bool is_model =
        line.find('/') != std::string::npos && line.find(' ') == std::string::npos;
    (is_model ? model_ : title_) = line;
  }

  bool table(const std::string& text) {
    const std::vector<std::string> head = cells_of(text);
    if (head.size() < 2) return false;
    if (head[0] == "Tasks") return lm_eval_table(head);
    if (head[0] == "Metric") return variant_table(head, "eval");
    if (head[0] == "ISL-OSL") return variant_table(head, "serve");
    if (head[0] == "Parallelism" || head[0] == "Sequence") return serving_table(head);
    return false;
  }

  static bool is_rule(const std::vector<std::string>& cells) {
    for (const std::string& cell : cells)
      if (cell.find_first_not_of("-:") != std::string::npos) return false;
    return true;
  }

  // Calls read(cells, line) for the rows under the head.
  template <typename Read>
  void each_row(std::size_t columns, Read read) {
    while (at_ + 1 < lines_.size()) {
      std::vector<std::string> cells = cells_of(lines_[at_ + 1].text);
      if (cells.empty()) break;
      ++at_;
      if (is_rule(cells)) continue;
      cells.resize(columns);
      read(cells, lines_[at_].number);
    }
  }

  // A blank cell continues the one above it.
  bool lm_eval_table(const std::vector<std::string>& head) {
    std::vector<std::string> above(head.size());
    each_row(head.size(), [&](std::vector<std::string>& cells, int line) {
      EndToEndRow row{.op = "eval", .model = model_, .source = where_ + ":" + std::to_string(line)};
      for (std::size_t i = 0; i < head.size(); ++i) {
        if (i < 2 && cells[i].empty()) cells[i] = above[i];
        above[i] = cells[i];
        if (head[i] == "Tasks") row.labels["task"] = cells[i];
        if (head[i] == "Version") row.labels["version"] = cells[i];
        if (head[i] == "Filter") row.labels["filter"] = cells[i];
        if (head[i] == "n-shot") row.labels["n_shot"] = cells[i];
        if (head[i] == "Metric") row.labels["metric"] = cells[i];
        // "N/A" is absent, not zero.
        if (head[i] == "Value")
          if (const auto value = number_in(cells[i])) row.numbers["value"] = *value;
        if (head[i] == "Stderr")
          if (const auto value = number_in(cells[i])) row.numbers["stderr"] = *value;
      }
      if (!arguments_.empty()) row.unknown["arguments"] = arguments_;
      if (row.number("value")) rows_.push_back(std::move(row));
    });
    return true;
  }

  std::string serving_number() const {
    if (title_.find("TTFT") != std::string::npos) return "ttft_ms.mean";
    if (title_.find("TPOT") != std::string::npos) return "tpot_ms.mean";
    if (title_.find("E2E") != std::string::npos) return "e2e_ms.mean";
    throw InputError(where_ + ":" + std::to_string(lines_[at_].number),
                     "the table is of " + (title_.empty() ? "nothing that is named" : title_),
                     "a line TTFT (ms), TPOT (ms) or E2E Latency (ms) above it");
  }

  // First column the point or metric, a column per variant. Averages are no measurement.
  bool variant_table(const std::vector<std::string>& head, const char* op) {
    const bool eval = std::string_view(op) == "eval";
    const std::string name = eval ? "value" : serving_number();
    each_row(head.size(), [&](const std::vector<std::string>& cells, int line) {
      if (cells[0] == "Average") return;
      for (std::size_t i = 1; i < head.size(); ++i) {
        const bool percent = cells[i].ends_with('%');
        const auto value = number_in(percent ? cells[i].substr(0, cells[i].size() - 1) : cells[i]);
        if (!value) continue;
        EndToEndRow& row = add(op, line);
        row.labels["variant"] = head[i];
        row.labels[eval ? "metric" : "input_output"] = cells[0];
        if (eval) row.labels["task"] = title_;
        row.numbers[name] = percent ? *value / 100 : *value;
      }
    });
    return true;
  }

  // Columns that name the point, then total tokens per second and GPU: one, or one per variant.
  bool serving_table(const std::vector<std::string>& head) {
    each_row(head.size(), [&](const std::vector<std::string>& cells, int line) {
      std::map<std::string, std::string> labels;
      for (std::size_t i = 0; i < head.size(); ++i) {
        if (head[i] == "Sequence") labels["input_output"] = cells[i];
        if (head[i] == "Parallelism") labels["parallelism"] = cells[i];
        if (head[i] == "Concurrency") labels["concurrency"] = cells[i];
      }
      for (std::size_t i = labels.size(); i < head.size(); ++i) {
        const auto value = number_in(cells[i]);
        if (!value) continue;  // a column of changes, "+5.1%"
        EndToEndRow& row = add("serve", line);
        row.labels = labels;
        if (head[i].find("tok/s") == std::string::npos) row.labels["variant"] = head[i];
        row.numbers["total_tokens_per_s_per_gpu"] = *value;
      }
    });
    return true;
  }

  const std::string where_;
  std::vector<Line> lines_;
  std::vector<EndToEndRow> rows_;
  std::size_t at_ = 0, pending_ = 0;
  std::string model_, title_, arguments_;
};

}  // namespace

std::vector<EndToEndRow> read_pasted(const std::string& text, const std::string& where) {
  return Reader(text, where).read();
}

}  // namespace moegauge
