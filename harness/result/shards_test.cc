#include "harness/result/shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/result/record_testing.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

using testing::HasSubstr;

std::vector<CaseRecord> rivals(std::int64_t tokens) {
  CaseRecord tuned = test_measured(tokens), by_default = test_measured(tokens);
  by_default.coordinates.config = "default";
  return {by_default, tuned};
}

// Shard `index` of `count` of a suite of seven points, each with two rivals.
ShardFile shard(std::size_t index, std::size_t count) {
  std::vector<CaseCoordinates> selection;
  ShardFile file{.where = "shard" + std::to_string(index) + ".json"};
  for (std::int64_t tokens = 1; tokens <= 7; ++tokens) {
    for (const CaseRecord& record : rivals(tokens)) {
      selection.push_back(record.coordinates);
      if (static_cast<std::size_t>(tokens - 1) % count == index - 1)
        file.result.cases.push_back(record);
    }
  }
  file.result.machine = {{"host_name", "node" + std::to_string(index)}};
  file.result.comparisons = {{.point = "point of shard " + std::to_string(index)}};
  file.result.context = {{"suite", "quick"},
                         {"seed", "0"},
                         {shard_key, std::to_string(index) + "/" + std::to_string(count)},
                         {selection_key, selection_text(selection, "2 s a case")},
                         {build_key, "0123456789abcdef"},
                         {"device.CPU", "memory 24 GiB"}};
  return file;
}

std::string& context(ShardFile& file, const std::string& key) {
  return std::ranges::find(file.result.context, key, &std::pair<std::string, std::string>::first)
      ->second;
}

std::string refusal(std::vector<ShardFile> files) {
  try {
    merge_shards(std::move(files));
  } catch (const InputError& error) {
    return error.what();
  }
  return "merged";
}

TEST(Shards, TogetherAreTheRunInItsOrderWhateverTheirs) {
  const Result merged = merge_shards({shard(3, 3), shard(1, 3), shard(2, 3)});
  ASSERT_EQ(merged.cases.size(), 14u);
  for (std::size_t i = 0; i < merged.cases.size(); ++i) {
    const CaseCoordinates& c = merged.cases[i].coordinates;
    EXPECT_EQ(c.tokens, static_cast<std::int64_t>(i / 2 + 1));
    EXPECT_EQ(c.config, i % 2 == 0 ? "default" : "tuned");
  }
  ASSERT_EQ(merged.comparisons.size(), 3u);
  EXPECT_EQ(merged.comparisons[0].point, "point of shard 1");
  EXPECT_EQ(merged.machine["host_name"], "node1");
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"suite", "quick"},
      {"seed", "0"},
      {build_key, "0123456789abcdef"},
      {"device.CPU", "memory 24 GiB"},
      {shards_key, "3"}};
  EXPECT_EQ(merged.context, expected);
}

TEST(Shards, ThatAreMissingAreNamed) {
  EXPECT_THAT(refusal({shard(1, 4), shard(2, 4), shard(4, 4)}), HasSubstr("shard 3/4 is missing"));
  EXPECT_THAT(refusal({shard(2, 4)}), HasSubstr("shards 1/4, 3/4, 4/4 are missing"));
  EXPECT_THAT(refusal({}), HasSubstr("no shard"));
}

TEST(Shards, BeyondThePointsHaveNoResultAndAreNotMissed) {
  std::vector<ShardFile> files;
  for (std::size_t i = 1; i <= 7; ++i) files.push_back(shard(i, 20));
  EXPECT_EQ(merge_shards(files).cases.size(), 14u);
}

TEST(Shards, ThatAreThereTwiceAreNamed) {
  ShardFile again = shard(2, 2);
  again.where = "again.json";
  EXPECT_EQ(refusal({shard(1, 2), shard(2, 2), again}),
            "again.json: shard 2/2 is there twice; shard2.json is it too; give each once");
}

TEST(Shards, OfAnotherRunAreNamedWithWhatDiffers) {
  for (const auto& key : {std::string("suite"), std::string("seed"), selection_key, build_key,
                          std::string("device.CPU")}) {
    ShardFile foreign = shard(2, 2);
    context(foreign, key) = "another";
    const std::string said = refusal({shard(1, 2), foreign});
    EXPECT_THAT(said,
                HasSubstr("shard2.json: shard 2/2 is foreign: its " + key + " is \"another\""));
  }
  EXPECT_THAT(refusal({shard(1, 2), shard(2, 3)}), HasSubstr("foreign: of 3 shards"));
}

TEST(Shards, ThatAreNoneAreRefused) {
  ShardFile whole = shard(1, 1);
  std::erase_if(whole.result.context, [](const auto& entry) { return entry.first == shard_key; });
  EXPECT_THAT(refusal({whole}), HasSubstr("no shard: its context does not say which it is"));
  for (const char* name : {"3/2", "0/2", "1", "x/y", "1/2x"}) {
    ShardFile wrong = shard(1, 2);
    context(wrong, shard_key) = name;
    EXPECT_THAT(refusal({wrong}), HasSubstr("is no shard")) << name;
  }
  ShardFile odd = shard(1, 1);
  context(odd, selection_key) = "all";
  EXPECT_THAT(refusal({odd}), HasSubstr("is no selection"));
}

TEST(Shards, ThatLackACaseAreNoticed) {
  ShardFile cut = shard(2, 2);
  cut.result.cases.pop_back();
  EXPECT_THAT(refusal({shard(1, 2), cut}), HasSubstr("together hold 13 cases, 7 points"));
}

TEST(Shards, ThatLackAPointAreNamed) {
  ShardFile cut = shard(2, 2);
  const std::string last = point_id(cut.result.cases.back().coordinates);
  std::erase_if(cut.result.cases,
                [&](const CaseRecord& record) { return point_id(record.coordinates) == last; });
  EXPECT_THAT(refusal({shard(1, 2), cut}), HasSubstr("shard 2/2 is not whole; run again"));
}

TEST(Shards, SelectionIsOfTheCasesInAnyOrder) {
  std::vector<CaseCoordinates> cases = {test_coordinates(1), test_coordinates(2)};
  const std::string text = selection_text(cases, "");
  std::ranges::reverse(cases);
  EXPECT_EQ(selection_text(cases, ""), text);
  EXPECT_NE(selection_text(cases, "2 s a case").substr(0, text.size()), text);
  cases[0].tokens = 3;
  EXPECT_NE(selection_text(cases, ""), text);
}

}  // namespace
}  // namespace moegauge
