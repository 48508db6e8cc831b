#include "kernels/cublaslt/weights.h"

#include <gtest/gtest.h>

namespace moegauge::cublaslt {
namespace {

// cuBLASLt's manual, 128x128 scaling: a column of blocks begins at a multiple of four.
TEST(BlockScales, AreRoundedUpToFourBlocksARow) {
  EXPECT_EQ(scale_pitch(128), 4);
  EXPECT_EQ(scale_pitch(512), 4);
  EXPECT_EQ(scale_pitch(513), 8);
  EXPECT_EQ(scale_pitch(2048), 16);
  const std::vector<float> scales = {1, 2, 3, 4, 5, 6};  // two rows of three blocks
  EXPECT_EQ(pad_block_scales(std::as_bytes(std::span(scales)), 288),
            (std::vector<float>{1, 2, 3, 0, 4, 5, 6, 0}));
}

TEST(TensorScale, BeginsAtAMultipleOf16Bytes) {
  const std::vector<float> scale = {0.25f};
  EXPECT_EQ(repeat_scale(std::as_bytes(std::span(scale))), (std::vector<float>(4, 0.25f)));
}

TEST(WeightBytes, AreThoseOfCanonicalStorage) {
  const Problem problem = {{.experts = 3, .top_k = 1, .hidden_size = 256, .intermediate_size = 64},
                           make_scheme("w4a16_g128"),
                           0};
  // w13 [128, 256] and w2 [256, 64] in half bytes; two scales and one scale of two bytes a row.
  EXPECT_EQ(weight_set_bytes(problem, *find_scheme(*problem.scheme)),
            3 * (128 * 256 / 2 + 256 * 64 / 2 + 128 * 2 * 2 + 256 * 2));
}

}  // namespace
}  // namespace moegauge::cublaslt
