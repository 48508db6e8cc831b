#include "harness/suite/select.h"

#include <gtest/gtest.h>

#include "reference/base/input_error.h"

namespace moegauge {
namespace {

CaseCoordinates make(const std::string& scheme, const std::string& config, std::int64_t tokens) {
  return {.model = "m", .scheme = scheme, .config = config, .tokens = tokens};
}

TEST(Filter, MatchesTheWholeId) {
  const std::string id = case_id(make("fp8_block", "tuned", 16));
  EXPECT_TRUE(matches_glob("*", id));
  EXPECT_TRUE(matches_glob("*/fp8_block/*/M=16", id));
  EXPECT_TRUE(matches_glob("fused_moe/m/fp?_block/*M=1[5-7]", id));
  EXPECT_FALSE(matches_glob("fp8_block", id));
  EXPECT_FALSE(matches_glob("*/M=1", id));
  EXPECT_FALSE(matches_glob("", id));
}

TEST(Filter, KeepsOrderAndMayKeepNothing) {
  const std::vector<CaseCoordinates> cases = {
      make("bf16", "default", 4), make("fp8_block", "default", 4), make("bf16", "default", 1)};
  EXPECT_EQ(filter_cases(cases, "*/bf16/*"), (std::vector{cases[0], cases[2]}));
  EXPECT_TRUE(filter_cases(cases, "*/int4/*").empty());
}

TEST(TokenList, ReadsNumbersAndGeometricRanges) {
  EXPECT_EQ(parse_token_list("1,4,16", "--tokens"), (std::vector<std::int64_t>{1, 4, 16}));
  EXPECT_EQ(parse_token_list("0", "--tokens"), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(parse_token_list("1-20*2,24", "--tokens"),
            (std::vector<std::int64_t>{1, 2, 4, 8, 16, 24}));
  EXPECT_EQ(parse_token_list("1048576", "--tokens"), (std::vector<std::int64_t>{1048576}));
}

std::string refusal(const std::string& text) {
  try {
    parse_token_list(text, "--tokens");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(TokenList, RefusesTheRest) {
  const std::string right =
      " is no batch size; write integers from 0 to 1048576, e.g. 1,4,16 or 1-4096*2";
  EXPECT_EQ(refusal(""), "--tokens: \"\"" + right);
  EXPECT_EQ(refusal("1,,2"), "--tokens: \"\"" + right);
  EXPECT_EQ(refusal("1,2,"), "--tokens: \"\"" + right);
  EXPECT_EQ(refusal("-1"), "--tokens: \"-1\"" + right);
  EXPECT_EQ(refusal("1048577"), "--tokens: \"1048577\"" + right);
  EXPECT_EQ(refusal("99999999999999999999"), "--tokens: \"99999999999999999999\"" + right);
  EXPECT_EQ(refusal("4x"), "--tokens: \"4x\"" + right);
  EXPECT_EQ(refusal("4,16,4"), "--tokens: 4 is given twice; give each batch size once");
  EXPECT_EQ(refusal("1-64*1"),
            "--tokens: \"1-64*1\" is an empty or endless range; write FIRST-LAST*FACTOR with 1 <= "
            "FIRST <= LAST and "
            "FACTOR >= 2");
}

TEST(TokenOverride, ReplacesBatchSizesAndKeepsRivalsAdjacent) {
  const std::vector<CaseCoordinates> cases = {make("bf16", "default", 4), make("bf16", "tuned", 4),
                                              make("bf16", "default", 8), make("bf16", "tuned", 8),
                                              make("fp8_block", "default", 4)};
  EXPECT_EQ(override_tokens(cases, {32, 2}),
            (std::vector{make("bf16", "default", 32), make("bf16", "tuned", 32),
                         make("bf16", "default", 2), make("bf16", "tuned", 2),
                         make("fp8_block", "default", 32), make("fp8_block", "default", 2)}));
}

}  // namespace
}  // namespace moegauge
