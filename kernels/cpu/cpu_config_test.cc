#include "kernels/cpu/cpu_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace moegauge::cpu {
namespace {

const Machine kMachine = {.l1_bytes = 32 << 10, .l2_bytes = 1 << 20, .processors = 16};
const Layer kLayer = {.experts = 8, .top_k = 2, .hidden_size = 2048, .intermediate_size = 768};
constexpr Recipe kPlain = {};
constexpr Recipe kGrouped = {.group = 128};

Expected<CpuConfig, Refusal> parse(std::map<std::string, std::int64_t> values,
                                   const Recipe& recipe = kPlain) {
  return parse_config({std::move(values)}, kLayer, recipe, 16, kMachine);
}

std::string refusal(std::map<std::string, std::int64_t> values, const Recipe& recipe = kPlain) {
  const auto parsed = parse(std::move(values), recipe);
  return parsed ? "served" : parsed.error().sentence;
}

TEST(CpuConfig, FillsInWhatAConfigLeavesOut) {
  const auto parsed = parse({{"num_threads", 3}, {"BLOCK_SIZE_M", 24}});
  ASSERT_TRUE(parsed.has_value());
  CpuConfig expected = heuristic_config(kLayer, kPlain, 16, kMachine);
  expected.num_threads = 3;
  expected.block_m = 24;
  EXPECT_EQ(*parsed, expected);
}

TEST(CpuConfig, AcceptsItsOwnHeuristicForEveryShapeAndBatch) {
  for (const std::int64_t k : {1, 64, 2048, 7168, 100000}) {
    for (const std::int64_t n : {1, 80, 768, 14336}) {
      for (const std::int64_t tokens : {0, 1, 16, 512, 8192}) {
        for (const Recipe& recipe : {kPlain, kGrouped}) {
          const Layer layer = {.experts = 8, .top_k = 2, .hidden_size = k, .intermediate_size = n};
          const CpuConfig config = heuristic_config(layer, recipe, tokens, kMachine);
          const auto parsed = parse_config(to_config(config), layer, recipe, tokens, kMachine);
          ASSERT_TRUE(parsed.has_value()) << parsed.error().sentence;
          EXPECT_EQ(*parsed, config);
        }
      }
    }
  }
}

TEST(CpuConfig, NamesTheNearestKeyForOneItDoesNotKnow) {
  EXPECT_EQ(refusal({{"BLOCK_SIZE_X", 64}}),
            "the cpu backend has no config key BLOCK_SIZE_X; did you mean BLOCK_SIZE_M?");
  EXPECT_EQ(refusal({{"num_thread", 2}}),
            "the cpu backend has no config key num_thread; did you mean num_threads?");
}

TEST(CpuConfig, SaysWhyKeysOfGpuFilesMeanNothingHere) {
  for (const char* key : {"GROUP_SIZE_M", "num_warps", "num_stages"}) {
    const auto parsed = parse({{key, 4}});
    ASSERT_FALSE(parsed.has_value());
    EXPECT_EQ(parsed.error().reason, RefusalReason::config_unknown_key);
    EXPECT_THAT(parsed.error().sentence, testing::HasSubstr("means nothing on a CPU"));
  }
}

TEST(CpuConfig, RefusesValuesWithTheNumbersThatWouldDo) {
  EXPECT_EQ(refusal({{"BLOCK_SIZE_M", 0}}), "BLOCK_SIZE_M is 0; it must lie in [1, 4096]");
  EXPECT_EQ(refusal({{"num_threads", 17}}),
            "num_threads is 17; it must lie in [1, 16], as this process may use 16 processors");
  EXPECT_EQ(refusal({{"BLOCK_SIZE_N", 96}}), "BLOCK_SIZE_N is 96; it must be a multiple of 64");
  EXPECT_EQ(refusal({{"BLOCK_SIZE_N", 64}}), "served");
  EXPECT_EQ(refusal({{"launch_per_expert", 2}}), "launch_per_expert is 2; it must lie in [0, 1]");
  EXPECT_EQ(refusal({{"BLOCK_SIZE_N", 64}}, kGrouped),
            "BLOCK_SIZE_N is 64; it must be a multiple of 128");
  EXPECT_EQ(refusal({{"BLOCK_SIZE_K", 48}}), "BLOCK_SIZE_K is 48; it must be a multiple of 32");
  // A panel is 64 columns of fp32: 256 bytes per element.
  EXPECT_EQ(refusal({{"BLOCK_SIZE_K", 4096}}), "served");
  const Machine small = {.l1_bytes = 16 << 10, .l2_bytes = 64 << 10, .processors = 1};
  const auto parsed = parse_config({{{"BLOCK_SIZE_K", 1024}}}, kLayer, kPlain, 16, small);
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().sentence,
            "BLOCK_SIZE_K 1024 needs a decoded panel of 262144 bytes and this CPU's L2 cache has "
            "65536; at most 256");
}

TEST(CpuConfig, CandidatesBeginWithTheHeuristicAndPass) {
  for (const Recipe& recipe : {kPlain, kGrouped}) {
    for (const std::int64_t tokens : {1, 64, 8192}) {
      const auto candidates = candidate_configs(kLayer, recipe, tokens, kMachine);
      ASSERT_GT(candidates.size(), 10u);
      const auto first = parse_config(candidates.front(), kLayer, recipe, tokens, kMachine);
      ASSERT_TRUE(first.has_value());
      EXPECT_EQ(*first, heuristic_config(kLayer, recipe, tokens, kMachine));
      for (const Config& candidate : candidates) {
        EXPECT_TRUE(parse_config(candidate, kLayer, recipe, tokens, kMachine).has_value());
        EXPECT_FALSE(candidate.values.contains("num_threads")) << "the machine's business";
        EXPECT_EQ(std::ranges::count(candidates, candidate), 1);
      }
    }
  }
}

}  // namespace
}  // namespace moegauge::cpu
