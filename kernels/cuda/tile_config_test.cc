#include "kernels/cuda/tile_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace moegauge::cuda {
namespace {

constexpr std::int64_t hopper_shared_bytes = 232448;

class TileConfigTest : public testing::Test {
 protected:
  Expected<TileConfig, Refusal> parse(const Config& config, std::int64_t tokens = 16) const {
    return parse_config(config, layer_, scheme_, tokens, hopper_shared_bytes);
  }
  std::string refusal(const Config& config) const {
    const auto parsed = parse(config);
    return parsed ? "served" : parsed.error().sentence;
  }

  Layer layer_ = {.experts = 128, .top_k = 8, .hidden_size = 2048, .intermediate_size = 768};
  const CudaScheme& scheme_ = *find_scheme(*make_scheme("fp8_block"), layer_);
};

TEST_F(TileConfigTest, DefaultsAreReadBackAsTheyWereWritten) {
  for (const std::int64_t tokens : {1, 4, 16, 64, 256, 1024, 8192}) {
    const TileConfig config = heuristic_config(layer_, scheme_, tokens);
    const auto parsed = parse(to_config(config), tokens);
    ASSERT_TRUE(parsed.has_value()) << tokens << ": " << parsed.error().sentence;
    EXPECT_EQ(*parsed, config);
  }
}

TEST_F(TileConfigTest, NamesAnUnknownKeyAndTheOnesThereAre) {
  EXPECT_EQ(refusal({{{"GROUP_SIZE_M", 8}}}),
            "the cuda backend has no config key GROUP_SIZE_M; it has BLOCK_SIZE_M, num_stages, "
            "SPLIT_K, SWAP_AB, CLUSTER_SIZE, DEALT, PROMOTE");
}

TEST_F(TileConfigTest, RefusesTooManyStagesWithTheNumbers) {
  // 12 stages of 256 weight rows and 64 tokens of 128 bytes are 12 * 40960 = 491520 bytes at least.
  const std::string sentence =
      refusal({{{"BLOCK_SIZE_M", 64}, {"num_stages", 12}, {"SWAP_AB", 1}}});
  EXPECT_NE(sentence.find("12 stages of 64 tokens need "), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("a block has 232448"), std::string::npos) << sentence;
}

TEST_F(TileConfigTest, RefusesWhatTheKernelsDoNotHave) {
  EXPECT_NE(refusal({{{"BLOCK_SIZE_M", 40}, {"SWAP_AB", 1}}}).find("tiles of 8, 16, 24"),
            std::string::npos);
  EXPECT_NE(refusal({{{"BLOCK_SIZE_M", 64}, {"SWAP_AB", 0}}}).find("needs BLOCK_SIZE_M 128"),
            std::string::npos);
  EXPECT_NE(refusal({{{"PROMOTE", 0}}}).find("block scales change"), std::string::npos);
  EXPECT_NE(refusal({{{"CLUSTER_SIZE", 3}}}).find("[1, 2]"), std::string::npos);
}

TEST_F(TileConfigTest, RefusesTilesWhoseSumsRegistersDoNotHold) {
  const CudaScheme& integers = *find_scheme(*make_scheme("w8a16_g128"), layer_);
  const auto parsed = parse_config({{{"BLOCK_SIZE_M", 96}, {"SPLIT_K", 0}}}, layer_, integers, 16,
                                   hopper_shared_bytes);
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(
      parsed.error().sentence,
      "integer weights need SWAP_AB 1 and BLOCK_SIZE_M of at most 80 (registers for sums), not "
      "1 and 96");
}

TEST_F(TileConfigTest, ServesPairsOfWholeTilesOfEitherOperandOrder) {
  const auto pairs = [](std::int64_t tile, std::int64_t swap, std::int64_t split) {
    return Config{
        {{"BLOCK_SIZE_M", tile}, {"CLUSTER_SIZE", 2}, {"SWAP_AB", swap}, {"SPLIT_K", split}}};
  };
  EXPECT_EQ(refusal(pairs(80, 1, 0)), "served");
  EXPECT_EQ(refusal(pairs(128, 0, 0)), "served");
  EXPECT_NE(refusal(pairs(64, 1, 1)).find("CLUSTER_SIZE 2 needs SPLIT_K 0"), std::string::npos);
}

TEST_F(TileConfigTest, DefaultsToSingleBlocksWherePairsDoNotFit) {
  // 5 and 3 weight tiles of 128 and 256 rows; 2048 tokens are 128 rows an expert.
  Layer odd = {.experts = 16, .top_k = 1, .hidden_size = 768, .intermediate_size = 640};
  const CudaScheme& channels = *find_scheme(*make_scheme("fp8_ptpc"), odd);
  EXPECT_EQ(heuristic_config(odd, channels, 2048), whole_tile(80, true));
  odd.hidden_size = 1024, odd.intermediate_size = 512;
  EXPECT_EQ(heuristic_config(odd, channels, 2048), paired_tile(80, true));
}

TEST_F(TileConfigTest, OneLaunchServesAsManyTokensAsPairsAndSharedMemoryLet) {
  const auto alone = [](const Layer& layer, const CudaScheme& scheme, std::int64_t tokens) {
    return is_alone(layer, scheme, heuristic_config(layer, scheme, tokens), tokens);
  };
  EXPECT_TRUE(alone(layer_, scheme_, 1));
  EXPECT_TRUE(alone(layer_, scheme_, 8));   // 64 pairs
  EXPECT_FALSE(alone(layer_, scheme_, 9));  // 72
  Layer wide = {.experts = 16, .top_k = 1, .hidden_size = 5120, .intermediate_size = 2048};
  EXPECT_TRUE(alone(wide, *find_scheme(*make_scheme("fp8_ptpc"), wide), 2));
  EXPECT_FALSE(alone(wide, *find_scheme(*make_scheme("fp8_ptpc"), wide), 3));
  // One scale for all of x, and columns sorted for each expert, are prepare's work.
  for (const std::int64_t tokens : {0, 1}) {
    EXPECT_FALSE(alone(layer_, *find_scheme(*make_scheme("fp8_tensor"), layer_), tokens));
    EXPECT_FALSE(alone(layer_, *find_scheme(*make_scheme("w4a16_g128_actorder"), layer_), tokens));
  }
}

TEST_F(TileConfigTest, CandidatesAreServedBeginWithTheDefaultAndAreThereOnce) {
  for (const char* name : {"bf16", "fp8_block", "fp8_ptpc", "fp8_tensor", "w4a16_g128"}) {
    const CudaScheme& scheme = *find_scheme(*make_scheme(name), layer_);
    for (const std::int64_t tokens : {1, 16, 256, 8192}) {
      const auto candidates = candidate_tiles(layer_, scheme, tokens, hopper_shared_bytes);
      const std::string what = std::string(name) + " M=" + std::to_string(tokens);
      EXPECT_GT(candidates.size(), 100u) << what;
      EXPECT_EQ(candidates.front(), heuristic_config(layer_, scheme, tokens)) << what;
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        const auto parsed =
            parse_config(to_config(candidates[i]), layer_, scheme, tokens, hopper_shared_bytes);
        ASSERT_TRUE(parsed.has_value()) << what << ": " << parsed.error().sentence;
        EXPECT_EQ(*parsed, candidates[i]);
        ASSERT_EQ(std::ranges::count(candidates, candidates[i]), 1) << what;
      }
    }
  }
}

// Sums that leave the tensor core more seldom than the default's would win time with accuracy.
TEST_F(TileConfigTest, CandidatesPromoteWhereTheDefaultDoes) {
  const CudaScheme& channels = *find_scheme(*make_scheme("fp8_ptpc"), layer_);
  ASSERT_TRUE(heuristic_config(layer_, channels, 16).promote);
  for (const TileConfig& c : candidate_tiles(layer_, channels, 16, hopper_shared_bytes)) {
    EXPECT_TRUE(c.promote);
  }
}

TEST_F(TileConfigTest, CandidatesOneStepAwayAlongEveryAxisComeFirst) {
  const auto candidates = candidate_tiles(layer_, scheme_, 16, hopper_shared_bytes);
  const TileConfig start = heuristic_config(layer_, scheme_, 16);  // 8 tokens, 4 stages, 2 dealt
  const auto place = [&](TileConfig c) {
    return std::ranges::find(candidates, c) - candidates.begin();
  };
  TileConfig wider = start, deeper = start, whole = start, dealt = start, far = start;
  wider.token_tile = 16, deeper.stages = 5, whole.split_k = false, dealt.dealt = 4;
  far.token_tile = 24;
  for (const TileConfig& near : {wider, deeper, whole, dealt}) EXPECT_LT(place(near), 8);
  EXPECT_GE(place(far), 8);
  EXPECT_LT(place(far), std::ssize(candidates));
}

}  // namespace
}  // namespace moegauge::cuda
