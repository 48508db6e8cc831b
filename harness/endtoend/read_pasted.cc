#include <array>
#include <optional>
#include <regex>
#include <span>

#include "harness/endtoend/pasted_tables.h"
#include "harness/endtoend/pasted_text.h"
#include "harness/endtoend/readers.h"
#include "harness/endtoend/serving_names.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

struct KnownLine {
  const char* text;
  const char* name;
};
// Lines of a serving block, by their beginning in lower case; "Mean TTFT (ms)" and its kin are read
// by pattern.
constexpr std::array<KnownLine, 8> block_lines = {
    {{"request throughput", "requests_per_s"},
     {"output token throughput", "output_tokens_per_s"},
     {"total token throughput", "total_tokens_per_s"},
     {"benchmark duration", "duration_s"},
     {"successful requests", "requests"},
     {"failed requests", "failed"},
     {"total input tokens", "input_tokens"},
     {"total generated tokens", "output_tokens"}}};

// std::regex recurses over what it matches: a line of megabytes would end the process.
constexpr std::size_t longest_line = 4096;

bool search(const std::string& text, std::smatch& match, const std::regex& pattern) {
  return text.size() <= longest_line && std::regex_search(text, match, pattern);
}

class Reader {
 public:
  Reader(const std::string& text, const std::string& file)
      : lines_(pasted_lines(text)), context_{.file = file} {}

  std::vector<EndToEndRow> read() {
    for (at_ = 0; at_ < lines_.size(); ++at_) {
      const std::string line = trimmed(lines_[at_].text);
      if (line.empty()) continue;
      if (serving_block(line) || throughput(line) || progress(line) || model_line(line) ||
          read_table(lines_, at_, context_, by_point_, rows_))
        continue;
      if (cells_of(lines_[at_].text).empty()) heading(line);
    }
    if (rows_.empty()) {
      throw InputError(
          context_.file + ":1", "nothing in it is a serving or accuracy result",
          "a serving block, Throughput: lines, progress lines, or a table is expected");
    }
    return std::move(rows_);
  }

 private:
  std::string place() const { return context_.file + ":" + std::to_string(lines_[at_].number); }

  EndToEndRow& add(const char* tool) {
    rows_.push_back(
        {.op = "serve",
         .model = context_.model,
         .source = {.file = context_.file, .lines = {lines_[at_].number}, .tool = tool}});
    return rows_.back();
  }

  // The numbers that a pattern found, each under its name.
  void put(EndToEndRow& row, std::span<const char* const> names, const std::smatch& match) {
    for (std::size_t i = 0; i < names.size(); ++i)
      if (const auto value = number_or_absent(match[i + 1], "a number", place()))
        row.numbers[names[i]] = *value;
  }

  bool serving_block(const std::string& line) {
    if (line.find("Serving Benchmark Result") == std::string::npos) return false;
    EndToEndRow& row = add("vllm bench serve, its printed block");
    const std::string begin = place();
    while (++at_ < lines_.size()) {
      const std::string text = trimmed(lines_[at_].text);
      if (text.empty()) continue;
      if (text.find_first_not_of('=') == std::string::npos) break;
      if (text.find("Serving Benchmark Result") != std::string::npos) {
        throw InputError(place(), "a block begins within the one of " + begin,
                         "each ends with a line of =");
      }
      const auto colon = text.rfind(':');
      if (colon != std::string::npos)
        block_line(row, text.substr(0, colon), text.substr(colon + 1));
    }
    if (row.numbers.empty())
      throw InputError(begin, "a serving block without a number", "lines as \"Mean TTFT (ms): 1\"");
    return true;
  }

  void block_line(EndToEndRow& row, const std::string& title, const std::string& text) {
    static const std::regex timing(R"(^(\S+) (TTFT|TPOT|ITL|E2EL) \(ms\)$)");
    std::smatch match;
    std::string name;
    if (search(title, match, timing)) name = timing_name(match[1], match[2]);
    const std::string plain = lower_case(title);
    for (const KnownLine& known : block_lines)
      if (plain.starts_with(known.text)) name = known.name;
    if (plain.starts_with("maximum request concurrency")) {
      row.labels["concurrency"] = trimmed(text);
    } else if (!name.empty()) {
      if (const auto value = number_or_absent(text, "a number", place()))
        row.numbers[name] = *value;
    } else if (const auto value = number_in(trimmed(text))) {
      row.unknown[title] = *value;
    } else {
      row.unknown[title] = trimmed(text);
    }
  }

  bool throughput(const std::string& line) {
    static const std::regex pattern(
        R"(Throughput: (\S+) requests/s, (\S+) total tokens/s, (\S+) output tokens/s)");
    if (line.find("Throughput: ") == std::string::npos) return false;
    std::smatch match;
    if (!search(line, match, pattern)) {
      throw InputError(place(), "a Throughput: line of another form",
                       "Throughput: A requests/s, B total tokens/s, C output tokens/s");
    }
    static constexpr std::array names = {"requests_per_s", "total_tokens_per_s",
                                         "output_tokens_per_s"};
    put(add("vllm bench throughput, its printed line"), names, match);
    return true;
  }

  bool progress(const std::string& line) {
    static const std::regex pattern(
        R"(Processed prompts: 100%.*\| *(\d+)/\d+ \[[^,]*, *(\S+?)(it/s|s/it), est\. speed input: (\S+) toks/s, output: (\S+) toks/s)");
    if (line.find("Processed prompts: 100%") == std::string::npos) return false;
    std::smatch match;
    if (!search(line, match, pattern)) {
      throw InputError(place(), "a progress line of another form",
                       "N/N [time, Xit/s, est. speed input: Y toks/s, output: Z toks/s]");
    }
    EndToEndRow& row = add("vllm, its progress line");
    const auto put_one = [&](const char* name, int group) {
      if (const auto value =
              number_or_absent(match[static_cast<std::size_t>(group)], "a number", place()))
        row.numbers[name] = *value;
    };
    put_one("requests", 1);
    put_one("requests_per_s", 2);
    put_one("input_tokens_per_s", 4);
    put_one("output_tokens_per_s", 5);
    if (const auto rate = row.numbers.find("requests_per_s");
        match[3] == "s/it" && rate != row.numbers.end() && rate->second > 0)
      rate->second = 1 / rate->second;
    // The progress line stands above the line that names the model.
    pending_ = rows_.size();
    return true;
  }

  // "vllm (pretrained=NAME,...), gen_kwargs: ..., num_fewshot: 5, ...", in newer versions with the
  // arguments as a Python dict.
  bool model_line(const std::string& line) {
    static const std::regex pattern(
        R"re(^\S+ \(\{?'?(?:pretrained|model)'?\s*[=:]\s*'?([^,')}]+).*\), gen_kwargs:)re");
    std::smatch match;
    if (!search(line, match, pattern)) return false;
    context_.model = match[1];
    context_.arguments = line;
    if (pending_ == rows_.size() && pending_ > 0) {
      rows_.back().model = context_.model;
      rows_.back().unknown["arguments"] = line;
    }
    pending_ = 0;
    return true;
  }

  // Text between tables: a model's name holds a slash, as does tok/s; anything else is the number's
  // title.
  void heading(const std::string& line) {
    const auto number = number_named_in(line);
    const bool is_rate = number && number->find("_per_s") != std::string::npos;
    const bool is_model =
        !is_rate && line.find('/') != std::string::npos && line.find(' ') == std::string::npos;
    (is_model ? context_.model : context_.title) = line;
  }

  const std::vector<PastedLine> lines_;
  PastedContext context_;
  RowsByPoint by_point_;
  std::vector<EndToEndRow> rows_;
  std::size_t at_ = 0, pending_ = 0;
};

}  // namespace

std::vector<EndToEndRow> read_pasted(const std::string& text, const std::string& where) {
  return Reader(text, where).read();
}

}  // namespace moegauge
