#include <algorithm>
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

// Points of one kind of work in the order of the rest of it, each with the one of it and all after
// it that says the most against others. So a file of many points takes no more than its length.
struct Lane {
  std::vector<std::pair<double, const Timed*>> points = {};  // by how much work

  void sort(bool least) {
    std::ranges::sort(points);
    for (std::size_t i = points.size(); i-- > 1;) {
      const Timed *here = points[i - 1].second, *later = points[i].second;
      if (least ? later->value < here->value : later->value > here->value)
        points[i - 1].second = later;
    }
  }
  // Of those with more than `amount`, or as much where that counts too; null where there is none.
  const Timed* beyond(double amount, bool as_much) const {
    const auto at = as_much ? std::ranges::lower_bound(points, amount, {}, &Point::first)
                            : std::ranges::upper_bound(points, amount, {}, &Point::first);
    return at == points.end() ? nullptr : at->second;
  }
  using Point = std::pair<double, const Timed*>;
};
using Lanes = std::map<std::pair<double, double>, Lane>;

// Times of more work: lanes by output and concurrency, in each by input.
const Timed* against_time(const Timed& one, const Lanes& lanes) {
  for (const auto& [kind, lane] : lanes) {
    if (kind.first < one.work.output || kind.second < one.work.concurrency) continue;
    const bool more = kind != std::pair(one.work.output, one.work.concurrency);
    const Timed* other = lane.beyond(one.work.input, more);
    if (other != nullptr && factor * other->value < one.value) return other;
  }
  return nullptr;
}

// Rates of fewer requests at once, of the same length: they do not serve twice as much in a second.
// Lanes by input and output, in each by concurrency, the most first.
const Timed* against_rate(const Timed& one, const Lanes& lanes) {
  const Timed* other =
      lanes.at({one.work.input, one.work.output}).beyond(-one.work.concurrency, false);
  return other != nullptr && factor * one.value < other->value ? other : nullptr;
}

Lanes lanes_of(const std::vector<Timed>& group, bool time) {
  Lanes lanes;
  for (const Timed& one : group) {
    const Work& work = one.work;
    if (time) {
      lanes[{work.output, work.concurrency}].points.emplace_back(work.input, &one);
    } else {
      lanes[{work.input, work.output}].points.emplace_back(-work.concurrency, &one);
    }
  }
  for (auto& [kind, lane] : lanes) lane.sort(time);
  return lanes;
}

std::string sentence(const Timed& one, const Timed& other, const std::string& name, bool time) {
  const std::string value = format_plain(one.value) + " " + unit_of(name);
  if (time) {
    return value + " is " + times_that(one.value / other.value) + amount(other.point->row()) +
           ", which is more work";
  }
  return value + " is less than half of that of " + amount(other.point->row()) +
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
    const std::string& name = key.first;
    const bool time = *direction_of(name) == GoodDirection::lower_is_better;
    const Lanes lanes = lanes_of(group, time);
    for (const Timed& one : group) {
      const Timed* other = time ? against_time(one, lanes) : against_rate(one, lanes);
      if (other != nullptr)
        suspects.emplace(one.point->id + "/" + name, sentence(one, *other, name, time));
    }
  }
  return suspects;
}

}  // namespace moegauge
