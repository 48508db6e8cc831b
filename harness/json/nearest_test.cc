#include "harness/json/nearest.h"

#include <gtest/gtest.h>

#include <array>

namespace moegauge {
namespace {

const std::array<std::string, 4> keys = {"tokens", "tp", "routing", "config"};

TEST(Nearest, SuggestsASlipAndListsTheRestOtherwise) {
  EXPECT_EQ(suggestion("toknes", keys), "did you mean \"tokens\"?");
  EXPECT_EQ(suggestion("rooting", keys), "did you mean \"routing\"?");
  EXPECT_EQ(suggestion("banana", keys), "known: tokens, tp, routing, config");
  EXPECT_EQ(suggestion(std::string(1'000'000, 'x'), keys), "known: tokens, tp, routing, config");
  EXPECT_EQ(suggestion("x", {}), "");
}

TEST(Nearest, RanksSimilarNamesByDistanceAndKeepsTheOrderOfTies) {
  const std::array<std::string, 4> names = {"bb", "ab", "aa", "zzzz"};
  EXPECT_EQ(similar_names("aa", names, 9), (std::vector<std::string>{"aa", "ab"}));
  EXPECT_EQ(similar_names("bx", names, 1), (std::vector<std::string>{"bb"}));
  EXPECT_TRUE(similar_names("cc", names, 9).empty());
  const std::array<std::string, 2> models = {"kimi-k2", "mixtral-8x7b"};
  EXPECT_EQ(similar_names("mixtral", models, 3), (std::vector<std::string>{"mixtral-8x7b"}));
  EXPECT_TRUE(similar_names("", models, 3).empty());
}

TEST(Nearest, ShowsHostileNamesInOneLine) {
  EXPECT_EQ(in_quotes("a\"b\n\x1b[31m"), "\"a\\\"b\\n\\u001b[31m\"");
  EXPECT_EQ(in_quotes("\xff"), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(in_quotes(std::string(500, 'y')), "\"" + std::string(120, 'y') + "...\"");
}

}  // namespace
}  // namespace moegauge
