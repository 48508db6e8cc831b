#include "harness/measure/roofline.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace moegauge {
namespace {

// E = 4, top_k = 2, K = 256, N = 128.
Layer small_layer() {
  Layer layer;
  layer.experts = 4;
  layer.top_k = 2;
  layer.hidden_size = 256;
  layer.intermediate_size = 128;
  return layer;
}

LayerInputs routed(const std::vector<std::int32_t>& ids) {
  LayerInputs inputs;
  inputs.tokens = static_cast<std::int64_t>(ids.size()) / 2;
  inputs.topk_ids = ids;
  return inputs;
}

// bf16: w13 256 x 256 and w2 256 x 128 elements of 2 bytes: 131072 + 65536.
TEST(ExpertBytes, OfBf16ByHand) {
  EXPECT_EQ(expert_bytes(small_layer(), *make_scheme("bf16")), 196608);
}

// fp8_block: one byte each, and an fp32 scale per 128 x 128: w13 2 x 2, w2 2 x 1 blocks.
TEST(ExpertBytes, OfBlockFp8CountsTheScales) {
  EXPECT_EQ(expert_bytes(small_layer(), *make_scheme("fp8_block")), 98304 + 4 * (4 + 2));
}

// Biases: fp32, 2N + K = 512 of them.
TEST(ExpertBytes, CountsBiases) {
  Layer layer = small_layer();
  layer.expert_bias = true;
  EXPECT_EQ(expert_bytes(layer, *make_scheme("bf16")), 196608 + 4 * 512);
}

// Tokens (0, 1) and (1, 3): 3 distinct experts, 4 pairs.
//   activations: 2 tokens * (256 * 2 in + 256 * 2 out + 2 pairs * (4 + 4)) = 2080
//   flops: 4 pairs * 6 * 128 * 256 = 786432
//   intermediates in fp32: 2 * 4 pairs * (128 + 256) * 4 = 12288
TEST(WorkOf, CountsDistinctExpertsOnceAndEveryPair) {
  const std::vector<std::int32_t> ids = {0, 1, 1, 3};
  const Work work = work_of(small_layer(), *make_scheme("bf16"), Numerics{}, routed(ids));
  EXPECT_EQ(work.weight_bytes, 3 * 196608);
  EXPECT_EQ(work.activation_bytes, 2080);
  EXPECT_EQ(work.flops, 786432);
  EXPECT_EQ(work.intermediate_bytes, 12288);
}

TEST(WorkOf, IntermediatesAreCountedInTheirDeclaredPrecision) {
  const std::vector<std::int32_t> ids = {0, 1, 1, 3};
  const Numerics halves{.act_out = Precision::activation_dtype,
                        .pair_out = Precision::activation_dtype};
  EXPECT_EQ(work_of(small_layer(), *make_scheme("bf16"), halves, routed(ids)).intermediate_bytes,
            6144);
}

// Of the pairs 0, -1, 2, 2 only those to experts 2 are here: one expert, two pairs.
TEST(WorkOf, DroppedAndRemotePairsCostNothing) {
  Layer layer = small_layer();
  layer.expert_map = {-1, -1, 0, 1};
  const std::vector<std::int32_t> ids = {0, -1, 2, 2};
  const Work work = work_of(layer, *make_scheme("bf16"), Numerics{}, routed(ids));
  EXPECT_EQ(work.weight_bytes, 196608);
  EXPECT_EQ(work.flops, 2 * 6 * 128 * 256);
}

TEST(WorkOf, NoTokensIsNoWork) {
  const Work work = work_of(small_layer(), *make_scheme("bf16"), Numerics{}, routed({}));
  EXPECT_EQ(work.bytes(), 0);
  EXPECT_EQ(work.flops, 0);
}

// 1e6 bytes at 1e9 per s: 1000 us. 4e6 flops at 1e10 per s: 400 us. Half of 4000 us is 2000 us.
TEST(Roofline, IsTheLongerOfMemoryAndCompute) {
  const Work work{
      .weight_bytes = 9e5, .activation_bytes = 1e5, .intermediate_bytes = 5e5, .flops = 4e6};
  const Roofline memory_bound = roofline_of(work, {1e9, 1e10}, 2000, Cache::cold_weights, 0);
  EXPECT_DOUBLE_EQ(memory_bound.floor_us, 1000);
  EXPECT_DOUBLE_EQ(memory_bound.floor_with_intermediates_us, 1500);
  EXPECT_DOUBLE_EQ(memory_bound.fraction, 0.5);
  const Roofline compute_bound = roofline_of(work, {1e12, 1e9}, 8000, Cache::cold_weights, 0);
  EXPECT_DOUBLE_EQ(compute_bound.floor_us, 4000);
  EXPECT_DOUBLE_EQ(compute_bound.fraction, 0.5);
}

TEST(Roofline, ACeilingThatWasNotMeasuredBoundsNothing) {
  const Work work{
      .weight_bytes = 1e6, .activation_bytes = 0, .intermediate_bytes = 0, .flops = 4e6};
  EXPECT_DOUBLE_EQ(roofline_of(work, {0, 1e10}, 800, Cache::cold, 0).floor_us, 400);
  EXPECT_EQ(roofline_of(work, {0, 0}, 800, Cache::cold, 0).fraction, 0);
}

TEST(Roofline, MemoryDoesNotBoundWhatStaysInCache) {
  const Work work{
      .weight_bytes = 1e6, .activation_bytes = 0, .intermediate_bytes = 0, .flops = 4e6};
  EXPECT_DOUBLE_EQ(roofline_of(work, {1e9, 1e10}, 800, Cache::hot, 2'000'000).floor_us, 400);
  EXPECT_DOUBLE_EQ(roofline_of(work, {1e9, 1e10}, 800, Cache::hot, 500'000).floor_us, 1000);
}

// ceil(4 * 48 / 37.7) = ceil(5.09); a call that touches four caches' worth needs no second set.
TEST(WeightSets, PassFourCachesBeforeASetIsReadAgain) {
  EXPECT_EQ(weight_sets_for_cold(37.7e6, 48'000'000), 6);
  EXPECT_EQ(weight_sets_for_cold(48e6, 48'000'000), 4);
  EXPECT_EQ(weight_sets_for_cold(192e6, 48'000'000), 1);
  EXPECT_EQ(weight_sets_for_cold(1e12, 48'000'000), 1);
  EXPECT_EQ(weight_sets_for_cold(0, 48'000'000), 1);
}

}  // namespace
}  // namespace moegauge
