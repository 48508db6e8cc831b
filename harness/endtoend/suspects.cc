#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

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

// What must be alike for the amount of work to be all that differs.
std::string all_but_work(const EndToEndRow& row) {
  EndToEndRow rest{.op = row.op, .model = row.model, .labels = row.labels};
  for (const char* name : {"input_output", "concurrency"}) rest.labels.erase(name);
  return rest.point();
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

// A number of a point, with how much work it is of.
struct Timed {
  const EndToEndPoint* point = nullptr;
  Work work = {};
  double value = 0;
};

// Why a number cannot be what it says, given that of `other`; empty where it can.
std::string why_suspect(const Timed& one, const Timed& other, const std::string& name) {
  const auto value = [&] { return format_plain(one.value) + " " + unit_of(name); };
  if (*direction_of(name) == GoodDirection::lower_is_better) {
    if (one.value <= factor * other.value || !one.work.at_most(other.work) ||
        one.work == other.work)
      return "";
    return value() + " is " + times_that(one.value / other.value) + amount(other.point->row()) +
           ", which is more work";
  }
  // More requests at once, of the same length, do not halve what is served in a second.
  const bool same_lengths =
      one.work.input == other.work.input && one.work.output == other.work.output;
  if (factor * one.value >= other.value || !same_lengths ||
      one.work.concurrency <= other.work.concurrency)
    return "";
  return value() + " is less than half of that of " + amount(other.point->row()) +
         ", which is fewer requests at once";
}

}  // namespace

std::map<std::string, std::string> suspects_of(const EndToEndSide& side) {
  // By number and what but the work must be alike.
  std::map<std::pair<std::string, std::string>, std::vector<Timed>> groups;
  for (const EndToEndPoint& point : side.points) {
    const auto work = work_of(point.row());
    if (point.row().op != "serve" || !work) continue;
    const std::string alike = all_but_work(point.row());
    for (const auto& [name, value] : point.row().numbers)
      if (direction_of(name)) groups[{name, alike}].push_back({&point, *work, *point.number(name)});
  }
  std::map<std::string, std::string> suspects;
  for (const auto& [key, group] : groups) {
    for (const Timed& one : group) {
      for (const Timed& other : group) {
        const std::string why = why_suspect(one, other, key.first);
        if (why.empty()) continue;
        suspects.emplace(one.point->id + "/" + key.first, why);
        break;
      }
    }
  }
  return suspects;
}

}  // namespace moegauge
