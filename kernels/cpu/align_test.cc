#include "kernels/cpu/align.h"

#include <gtest/gtest.h>

namespace moegauge::cpu {
namespace {

using Ids = std::vector<std::int32_t>;

TEST(Align, SortsPairsByExpertAndKeepsTheOrderOfTokens) {
  const Layer layer = {.experts = 4, .top_k = 2};
  Alignment a;
  align(layer, Ids{2, 0, 2, 2, 3, 0}, a);
  EXPECT_EQ(a.begin, (std::vector<std::int64_t>{0, 2, 2, 5, 6}));
  EXPECT_EQ(a.pairs, (Ids{1, 5, 0, 2, 3, 4}));
  EXPECT_EQ(a.position, (Ids{2, 0, 3, 4, 5, 1}));
  EXPECT_EQ(a.rows(0), 2);
  EXPECT_EQ(a.rows(1), 0);
}

TEST(Align, LeavesOutDroppedAndForeignPairs) {
  const Layer layer = {.experts = 4, .top_k = 2, .expert_map = {-1, 1, 0, -1}};
  Alignment a;
  align(layer, Ids{0, 1, -1, 2, 3, 2}, a);
  EXPECT_EQ(a.begin, (std::vector<std::int64_t>{0, 2, 3}));
  EXPECT_EQ(a.pairs, (Ids{3, 5, 1}));
  EXPECT_EQ(a.position, (Ids{-1, 2, -1, 0, -1, 1}));
}

TEST(Align, ForgetsTheCallBefore) {
  const Layer layer = {.experts = 2, .top_k = 1};
  Alignment a;
  align(layer, Ids{0, 1, 1}, a);
  align(layer, Ids{1}, a);
  EXPECT_EQ(a.local_pairs(), 1);
  EXPECT_EQ(a.begin, (std::vector<std::int64_t>{0, 0, 1}));
  align(layer, Ids{}, a);
  EXPECT_EQ(a.local_pairs(), 0);
}

}  // namespace
}  // namespace moegauge::cpu
