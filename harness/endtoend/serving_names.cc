#include "harness/endtoend/serving_names.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <vector>

#include "harness/endtoend/pasted_text.h"

namespace moegauge {
namespace {

// "p99", "p99.9"
bool is_percentile(const std::string& word) {
  return word.size() > 1 && word[0] == 'p' && number_in(word.substr(1)).has_value();
}

template <std::size_t N>
bool is_one_of(const std::string& word, const std::array<std::string_view, N>& words) {
  return std::ranges::find(words, word) != words.end();
}
constexpr std::array<std::string_view, 4> token = {"tok", "toks", "token", "tokens"};
constexpr std::array<std::string_view, 4> request = {"req", "reqs", "request", "requests"};
constexpr std::array<std::string_view, 4> second = {"s", "sec", "second", "seconds"};
constexpr std::array<std::string_view, 3> other_units = {"us", "µs", "ns"};

// "Total tok/s/GPU" as total, tok, s, gpu.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words(1);
  const std::string plain = lower_case(text);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const char c = plain[i];
    // The point of p99.9, not that of a sentence.
    const bool point =
        c == '.' && i + 1 < plain.size() && plain[i + 1] >= '0' && plain[i + 1] <= '9';
    const bool letter =
        (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c & 0x80) != 0 || point;
    if (letter) {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// What a title names, as far as it was read; a name is whole where each set holds one.
struct Named {
  std::set<std::string> times = {}, statistics = {}, rates = {};
  bool other_unit = false;
};

void put_times(const std::vector<std::string>& words, Named& named) {
  struct Phrase {
    std::string_view text;
    const char* time;
  };
  static constexpr std::array phrases = {
      Phrase{" ttft ", "ttft"},      Phrase{" time to first token ", "ttft"},
      Phrase{" tpot ", "tpot"},      Phrase{" time per output token ", "tpot"},
      Phrase{" itl ", "itl"},        Phrase{" inter token latency ", "itl"},
      Phrase{" e2e ", "e2el"},       Phrase{" e2el ", "e2el"},
      Phrase{" end to end ", "e2el"}};
  std::string line = " ";
  for (const std::string& word : words) line += word + " ";
  for (const Phrase& phrase : phrases)
    if (line.find(phrase.text) != std::string::npos) named.times.insert(phrase.time);
}

std::string statistic_of(const std::string& word) {
  if (word == "mean" || word == "average" || word == "avg") return "mean";
  if (word == "std" || word == "stdev") return "std";
  if (word == "median" || is_percentile(word)) return word;
  static constexpr std::array<std::string_view, 4> others = {"max", "maximum", "min", "minimum"};
  if (is_one_of(word, others)) return "none that rows have";
  const std::string nth = word.ends_with("th") ? word.substr(0, word.size() - 2) : "";
  return nth.empty() || !number_in(nth) ? "" : "p" + nth;
}

// "total", "input", "output" before words[at], which is tokens or throughput; both of the latter
// are the total.
std::string kind_before(const std::vector<std::string>& words, std::size_t at) {
  std::set<std::string> kinds;
  while (at-- > 0) {
    const std::string& word = words[at];
    if (word == "total" || word == "output" || word == "input") {
      kinds.insert(word);
    } else if (word == "generated" || word == "generation" || word == "decode") {
      kinds.insert("output");
    } else if (word == "prompt" || word == "prefill") {
      kinds.insert("input");
    } else if (word != "and" && !is_one_of(word, token)) {
      break;
    }
  }
  if (kinds.contains("input") && kinds.contains("output")) return "total";
  if (kinds.size() > 1) kinds.erase("total");
  return kinds.empty() ? "" : *kinds.begin();
}

// What follows the second of a rate: "", "_per_gpu", or what makes it a rate that rows do not have.
std::string divisor(const std::vector<std::string>& words, std::size_t at) {
  if (at < words.size() && (words[at] == "per" || words[at] == "and")) ++at;
  if (at == words.size()) return "";
  const std::string& word = words[at];
  if (word == "gpu" || word == "device") return "_per_gpu";
  static constexpr std::array<std::string_view, 6> others = {"user",   "node",   "request",
                                                             "stream", "socket", "server"};
  return is_one_of(word, others) ? "_per_" + word : "";
}

void put_rates(const std::vector<std::string>& words, Named& named) {
  std::string throughput;  // "Output throughput (tok/s)", "Throughput per GPU (total tok/s)"
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i] == "throughput") throughput = kind_before(words, i);
  bool per_gpu = false;
  for (std::size_t i = 0; i + 1 < words.size(); ++i)
    per_gpu |= words[i] == "per" && (words[i + 1] == "gpu" || words[i + 1] == "device");
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const bool tokens = is_one_of(words[i], token);
    if (!tokens && !is_one_of(words[i], request)) continue;
    const std::size_t at = words[i + 1] == "per" ? i + 2 : i + 1;
    if (at >= words.size() || !is_one_of(words[at], second)) continue;
    std::string kind = tokens ? kind_before(words, i) : "";
    if (tokens && kind.empty()) kind = throughput;
    std::string by = divisor(words, at + 1);
    if (by.empty() && per_gpu) by = "_per_gpu";
    const std::string what = !tokens ? "requests" : kind.empty() ? "" : kind + "_tokens";
    named.rates.insert(what.empty() ? "" : what + "_per_s" + by);
  }
}

Named read_name(const std::string& text) {
  const std::vector<std::string> words = words_of(text);
  Named named;
  put_times(words, named);
  put_rates(words, named);
  bool milliseconds = false;
  for (const std::string& word : words) {
    if (const std::string statistic = statistic_of(word); !statistic.empty())
      named.statistics.insert(statistic);
    milliseconds |= word == "ms";
    named.other_unit |= is_one_of(word, second) || is_one_of(word, other_units);
  }
  named.other_unit &= !milliseconds;
  return named;
}

}  // namespace

std::string timing_name(const std::string& statistic, const std::string& time) {
  static constexpr std::array times = {"ttft", "tpot", "itl", "e2el"};
  const std::string which = lower_case(time), of = lower_case(statistic);
  if (std::ranges::find(times, which) == times.end()) return "";
  if (of != "mean" && of != "median" && of != "std" && !is_percentile(of)) return "";
  return (which == "e2el" ? "e2e" : which) + "_ms." + of;
}

std::optional<std::string> number_named_in(const std::string& text) {
  const Named named = read_name(text);
  if (named.times.size() + named.rates.size() != 1 || named.statistics.size() > 1)
    return std::nullopt;
  const std::string statistic = named.statistics.empty() ? "mean" : *named.statistics.begin();
  std::string name;
  if (!named.times.empty() && !named.other_unit) {
    name = timing_name(statistic, *named.times.begin());
  } else if (!named.rates.empty() && statistic == "mean") {
    name = *named.rates.begin();
    if (!name.ends_with("_per_s") && !name.ends_with("_per_s_per_gpu")) name.clear();
  }
  return name.empty() ? std::nullopt : std::optional(name);
}

bool speaks_of_a_number(const std::string& text) {
  static constexpr std::array<std::string_view, 4> others = {"latency", "throughput", "ms", "tps"};
  const Named named = read_name(text);
  if (!named.times.empty() || !named.rates.empty() || !named.statistics.empty()) return true;
  return named.other_unit || std::ranges::any_of(words_of(text), [](const std::string& word) {
           return is_one_of(word, others) || is_one_of(word, token);
         });
}

}  // namespace moegauge
