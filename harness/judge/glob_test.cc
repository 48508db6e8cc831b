#include "harness/judge/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace moegauge {
namespace {

TEST(Glob, StarCrossesSlashes) {
  EXPECT_TRUE(matches_glob("*/M=16", "fused_moe/m/fp8_block/M=16"));
  EXPECT_FALSE(matches_glob("*/M=16", "fused_moe/m/fp8_block/M=160"));
  EXPECT_TRUE(matches_glob("fused_moe/*/M=1?", "fused_moe/m/M=16"));
}

TEST(Glob, BacktracksOverWrongGuesses) {
  EXPECT_TRUE(matches_glob("*aab", "aaaaab"));
  EXPECT_TRUE(matches_glob("a*b*c", "axbxbxc"));
  EXPECT_FALSE(matches_glob("a*b*c", "axbxbx"));
}

TEST(Glob, IdWithBracketsMatchesItself) {
  const std::string id = "op/m/s/tp1.ep1/cpu/file:E=8,block_shape=[128,128].json/M=1";
  EXPECT_TRUE(matches_glob(id, id));
}

TEST(Glob, EmptyPatternMatchesOnlyEmptyText) {
  EXPECT_TRUE(matches_glob("", ""));
  EXPECT_TRUE(matches_glob("*", ""));
  EXPECT_FALSE(matches_glob("", "a"));
  EXPECT_FALSE(matches_glob("?", ""));
}

TEST(Glob, ManyStarsTakeNoExponentialTime) {
  std::string pattern;
  for (int i = 0; i < 50; ++i) pattern += "*a";
  EXPECT_FALSE(matches_glob(pattern + "b", std::string(5000, 'a')));
}

}  // namespace
}  // namespace moegauge
