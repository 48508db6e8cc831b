#include "harness/result/shards.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "harness/json/nearest.h"
#include "reference/base/fnv1a.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

const std::string* find_key(const Result& result, const std::string& key) {
  const auto found =
      std::ranges::find(result.context, key, &std::pair<std::string, std::string>::first);
  return found == result.context.end() ? nullptr : &found->second;
}

std::string text_of(const std::set<std::string>& ids, std::size_t points,
                    const std::string& effort) {
  std::string text = effort;
  for (const std::string& id : ids) text += "\n" + id;
  return std::to_string(ids.size()) + " cases, " + std::to_string(points) + " points, " +
         fnv1a_hex(text) + (effort.empty() ? "" : ", " + effort);
}

// The parts of a selection's text that are numbers; nothing where it is none.
struct Selection {
  std::size_t points = 0;
  std::string effort;
};
std::optional<Selection> read_selection(const std::string& text) {
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool separator = text.compare(i, 2, ", ") == 0 && parts.size() < 4;
    if (separator) {
      parts.emplace_back();
      ++i;
    } else {
      parts.back() += text[i];
    }
  }
  if (parts.size() < 3) return std::nullopt;
  Selection selection{.effort = parts.size() == 4 ? parts[3] : ""};
  const std::string& points = parts[1];
  if (std::from_chars(points.data(), points.data() + points.size(), selection.points).ec !=
      std::errc()) {
    return std::nullopt;
  }
  return selection;
}

struct Shard {
  std::size_t index = 0, count = 0;
  std::string name;  // "3/8"
  ShardFile file;
};

Shard read_shard(ShardFile file) {
  Shard shard;
  const std::string* name = find_key(file.result, shard_key);
  if (name == nullptr) {
    throw InputError(file.where, "no shard: its context does not say which it is",
                     "give what moegauge run --shard I/N wrote");
  }
  const char* const end = name->data() + name->size();
  const auto first = std::from_chars(name->data(), end, shard.index);
  const bool slash = first.ec == std::errc() && first.ptr != end && *first.ptr == '/';
  const auto second = std::from_chars(slash ? first.ptr + 1 : end, end, shard.count);
  if (!slash || second.ec != std::errc() || second.ptr != end || shard.index < 1 ||
      shard.index > shard.count) {
    throw InputError(file.where, in_quotes(*name) + " is no shard", "I/N with 1 <= I <= N");
  }
  shard.name = *name;
  shard.file = std::move(file);
  return shard;
}

void refuse_foreign(const Shard& shard, const Shard& first) {
  if (shard.count != first.count) {
    throw InputError(shard.file.where,
                     "shard " + shard.name + " is foreign: of " + std::to_string(shard.count) +
                         " shards, where " + first.file.where + " is of " +
                         std::to_string(first.count),
                     "give the shards of one run");
  }
  const auto refuse = [&](const std::string& key) {
    const std::string* its = find_key(shard.file.result, key);
    const std::string* expected = find_key(first.file.result, key);
    if (its != nullptr && expected != nullptr && *its == *expected) return;
    throw InputError(shard.file.where,
                     "shard " + shard.name + " is foreign: its " + key + " is " +
                         (its == nullptr ? "not there" : in_quotes(*its)) + ", that of " +
                         first.file.where + " " +
                         (expected == nullptr ? "not there" : in_quotes(*expected)),
                     "give the shards of one run");
  };
  for (const std::string& key :
       {std::string("suite"), selection_key, std::string("seed"), build_key}) {
    refuse(key);
  }
  for (const auto& [key, value] : shard.file.result.context) {
    // What a device is beside its name must be the same, or its cases are not comparable.
    if (key.starts_with("device.") && find_key(first.file.result, key) != nullptr) refuse(key);
  }
}

std::vector<Shard> in_order(std::vector<ShardFile> files) {
  std::vector<Shard> shards;
  shards.reserve(files.size());
  for (ShardFile& file : files) shards.push_back(read_shard(std::move(file)));
  for (const Shard& shard : shards) refuse_foreign(shard, shards.front());
  std::ranges::stable_sort(shards, {}, &Shard::index);
  for (std::size_t i = 1; i < shards.size(); ++i) {
    if (shards[i].index != shards[i - 1].index) continue;
    throw InputError(shards[i].file.where, "shard " + shards[i].name + " is there twice",
                     shards[i - 1].file.where + " is it too; give each once");
  }
  return shards;
}

// More shards than points: those beyond have nothing to measure and leave no result.
void require_all(const std::vector<Shard>& shards, const Selection& selection) {
  const Shard& first = shards.front();
  std::set<std::size_t> there;
  for (const Shard& shard : shards) there.insert(shard.index);
  std::vector<std::string> missing;
  for (std::size_t i = 1; i <= std::min(first.count, selection.points); ++i) {
    if (!there.contains(i))
      missing.push_back(std::to_string(i) + "/" + std::to_string(first.count));
  }
  if (missing.empty()) return;
  const bool one = missing.size() == 1;
  throw InputError(
      std::string("merge"),
      (one ? "shard " : "shards ") + joined(missing) + (one ? " is" : " are") + " missing",
      "run " + std::string(one ? "it" : "them") + " with --shard and merge again");
}

// Points were dealt in turn (worker/schedule.h), so that each shard's number of them is known.
std::string not_whole(std::span<const std::size_t> points_of_shards,
                      const std::vector<Shard>& shards, std::size_t points) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const Shard& shard = shards[i];
    const std::size_t its = (points + shard.count - shard.index) / shard.count;
    if (points_of_shards[i] != its) names.push_back(shard.name);
  }
  if (names.empty()) return "run again those that are not whole";
  return (names.size() == 1 ? "shard " : "shards ") + joined(names) +
         (names.size() == 1 ? " is" : " are") + " not whole; run again";
}

// The points of a result in order, each with its cases.
std::vector<std::vector<CaseRecord>> points_of(std::vector<CaseRecord> cases) {
  std::map<std::string, std::size_t> at;
  std::vector<std::vector<CaseRecord>> points;
  for (CaseRecord& record : cases) {
    const auto [known, is_new] = at.emplace(point_id(record.coordinates), points.size());
    if (is_new) points.emplace_back();
    points[known->second].push_back(std::move(record));
  }
  return points;
}

// `points_of_shards`: how many each shard has.
std::vector<CaseRecord> collected(std::vector<Shard>& shards,
                                  std::vector<std::size_t>& points_of_shards) {
  std::vector<std::vector<std::vector<CaseRecord>>> dealt;
  std::size_t rounds = 0;
  for (Shard& shard : shards) {
    dealt.push_back(points_of(std::move(shard.file.result.cases)));
    points_of_shards.push_back(dealt.back().size());
    rounds = std::max(rounds, dealt.back().size());
  }
  std::vector<CaseRecord> cases;
  for (std::size_t round = 0; round < rounds; ++round) {
    for (auto& points : dealt) {
      if (round >= points.size()) continue;
      std::ranges::move(points[round], std::back_inserter(cases));
    }
  }
  return cases;
}

}  // namespace

std::string selection_text(std::span<const CaseCoordinates> cases, const std::string& effort) {
  std::set<std::string> ids, points;
  for (const CaseCoordinates& c : cases) {
    ids.insert(case_id(c));
    points.insert(point_id(c));
  }
  return text_of(ids, points.size(), effort);
}

std::string selection_text(std::span<const CaseRecord> cases, const std::string& effort) {
  std::vector<CaseCoordinates> coordinates;
  for (const CaseRecord& record : cases) coordinates.push_back(record.coordinates);
  return selection_text(coordinates, effort);
}

Result merge_shards(std::vector<ShardFile> files) {
  if (files.empty()) throw InputError("merge", "no shard", "give the files of all");
  std::vector<Shard> shards = in_order(std::move(files));
  const Shard& first = shards.front();
  const std::string selected = *find_key(first.file.result, selection_key);
  const auto selection = read_selection(selected);
  if (!selection) {
    throw InputError(first.file.where, in_quotes(selected) + " is no selection",
                     "35 cases, 18 points and a hash");
  }
  require_all(shards, *selection);

  Result merged;
  merged.machine = first.file.result.machine;
  merged.minor_version = first.file.result.minor_version;
  for (const Shard& shard : shards) {
    for (const auto& [key, value] : shard.file.result.context) {
      if (key == shard_key || key == selection_key || find_key(merged, key) != nullptr) continue;
      merged.context.emplace_back(key, value);
    }
    const auto& comparisons = shard.file.result.comparisons;
    merged.comparisons.insert(merged.comparisons.end(), comparisons.begin(), comparisons.end());
  }
  merged.context.emplace_back(shards_key, std::to_string(first.count));
  const std::size_t count = first.count;
  std::vector<std::size_t> points_of_shards;
  merged.cases = collected(shards, points_of_shards);
  const std::string found = selection_text(merged.cases, selection->effort);
  if (found != selected) {
    throw InputError("merge", "the " + std::to_string(count) + " shards together hold " + found,
                     "their runs were to be of " + selected + "; " +
                         not_whole(points_of_shards, shards, selection->points));
  }
  return merged;
}

}  // namespace moegauge
