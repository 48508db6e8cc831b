#include <charconv>
#include <cmath>

#include "harness/endtoend/points.h"
#include "harness/judge/numbers.h"

namespace moegauge {
namespace {

// Beyond this factor more work in less time is no noise.
constexpr double factor = 2;

// How much work a point is: "8K/1K" or "8192-1024" and the requests at once.
struct Work {
  double input = 0, output = 0, concurrency = 0;

  bool at_most(const Work& other) const {
    return input <= other.input && output <= other.output && concurrency <= other.concurrency;
  }
  bool operator==(const Work&) const = default;
};

std::optional<double> length_in(std::string_view text) {
  double length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (error != std::errc()) return std::nullopt;
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (rest.empty()) return length;
  return rest == "K" || rest == "k" ? std::optional(1024 * length) : std::nullopt;
}

std::optional<Work> work_of(const EndToEndRow& row) {
  Work work;
  if (const auto found = row.labels.find("input_output"); found != row.labels.end()) {
    const std::string& text = found->second;
    const auto between = text.find_first_of("-/");
    if (between == std::string::npos) return std::nullopt;
    const auto input = length_in(std::string_view(text).substr(0, between));
    const auto output = length_in(std::string_view(text).substr(between + 1));
    if (!input || !output) return std::nullopt;
    work.input = *input, work.output = *output;
  }
  if (const auto found = row.labels.find("concurrency"); found != row.labels.end()) {
    const auto concurrency = length_in(found->second);
    if (!concurrency) return std::nullopt;
    work.concurrency = *concurrency;
  }
  return work;
}

// Whether nothing but the amount of work differs.
bool same_but_for_work(const EndToEndRow& a, const EndToEndRow& b) {
  const auto rest = [](const EndToEndRow& row) {
    auto labels = row.labels;
    for (const char* name : {"input_output", "concurrency", "variant"}) labels.erase(name);
    return labels;
  };
  return a.op == b.op && a.model == b.model && rest(a) == rest(b);
}

std::string amount(const EndToEndRow& row) {
  std::string text;
  for (const char* name : {"input_output", "concurrency"}) {
    const auto found = row.labels.find(name);
    if (found == row.labels.end()) continue;
    text += (text.empty() ? "" : " ") + std::string(name) + "=" + found->second;
  }
  return text;
}

std::string times_that(double ratio) {
  return format_plain(std::round(10 * ratio) / 10) + " times that of ";
}

// Why `name` of `point` cannot be what it says, given `other`; empty where it can.
std::string why_suspect(const EndToEndPoint& point, const EndToEndPoint& other,
                        const std::string& name) {
  const auto value = point.number(name), against = other.number(name);
  const auto work = work_of(point.row()), more = work_of(other.row());
  if (!value || !against || !work || !more || *work == *more) return "";
  if (*direction_of(name) == GoodDirection::lower_is_better) {
    if (!work->at_most(*more) || *value <= factor * *against) return "";
    return format_plain(*value) + " " + unit_of(name) + " is " + times_that(*value / *against) +
           amount(other.row()) + ", which is more work";
  }
  // More requests at once, of the same length, do not halve what is served in a second.
  const Work fewer = *more;
  const bool same_lengths = work->input == fewer.input && work->output == fewer.output;
  if (!same_lengths || work->concurrency <= fewer.concurrency || factor * *value >= *against)
    return "";
  return format_plain(*value) + " " + unit_of(name) + " is less than half of that of " +
         amount(other.row()) + ", which is fewer requests at once";
}

}  // namespace

std::map<std::string, std::string> suspects_of(const EndToEndSide& side) {
  std::map<std::string, std::string> suspects;
  for (const EndToEndPoint& point : side.points) {
    for (const auto& [name, value] : point.row().numbers) {
      if (point.row().op != "serve" || !direction_of(name)) continue;
      for (const EndToEndPoint& other : side.points) {
        if (!same_but_for_work(point.row(), other.row())) continue;
        const std::string why = why_suspect(point, other, name);
        if (!why.empty()) suspects.emplace(point.id + "/" + name, why);
      }
    }
  }
  return suspects;
}

}  // namespace moegauge
