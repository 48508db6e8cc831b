#include "harness/judge/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "reference/base/input_error.h"

namespace moegauge {
namespace {

using Json = nlohmann::ordered_json;
using testing::AllOf;
using testing::HasSubstr;

Json valid() {
  return Json::parse(R"({
    "schema": "moegauge.policy/1", "name": "p", "confidence": 0.95, "strict": true,
    "total": {"limit": 1.03, "applies_above": 0.01},
    "latency": [
      {"tokens": [1, 16], "scheme": "fp8_*", "ratio_limit": 1.1, "between_runs": 0.03, "floor_us": 1},
      {"ratio_limit": 1.05, "between_runs": 0.014, "floor_us": 0.5}],
    "error": [
      {"inputs": "exact", "relative_l2": 0, "worst_token": 0, "growth_limit": 1, "growth_floor": 0},
      {"growth_limit": 1.03, "growth_floor": 1e-6}]})");
}

std::string error_of(const std::function<void(Json&)>& change) {
  Json json = valid();
  change(json);
  try {
    policy_from_json(json, "p.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Policy, IsReadWhole) {
  const Policy policy = policy_from_json(valid(), "p.json");
  EXPECT_EQ(policy.name, "p");
  EXPECT_TRUE(policy.strict);
  EXPECT_EQ(policy.total->limit, 1.03);
  ASSERT_EQ(policy.latency.size(), 2u);
  EXPECT_EQ(policy.latency[0].match.tokens_to, 16);
  EXPECT_EQ(*policy.error[0].relative_l2, 0);
  EXPECT_FALSE(policy.error[1].relative_l2);
}

TEST(Policy, TheFirstRuleThatMatchesDecides) {
  const Policy policy = policy_from_json(valid(), "p.json");
  CaseCoordinates c;
  c.scheme = "fp8_block";
  c.tokens = 16;
  EXPECT_EQ(policy.latency_rule(c).ratio_limit, 1.1);
  c.tokens = 17;
  EXPECT_EQ(policy.latency_rule(c).ratio_limit, 1.05);
  c.tokens = 16;
  c.scheme = "bf16";
  EXPECT_EQ(policy.latency_rule(c).ratio_limit, 1.05);
  c.inputs = "exact";
  EXPECT_EQ(policy.error_rule(c).growth_limit, 1);
}

TEST(Policy, RefusesToLeaveCasesUnjudged) {
  EXPECT_THAT(
      error_of([](Json& j) { j["latency"].erase(1); }),
      HasSubstr("p.json: /latency: some cases have no rule; end the list with a rule without"));
  EXPECT_THAT(error_of([](Json& j) { j["error"] = Json::array(); }),
              HasSubstr("/error: some cases have no rule"));
}

TEST(Policy, RefusesARuleThatCanNeverBeUsed) {
  EXPECT_THAT(error_of([](Json& j) { j["latency"].push_back(j["latency"][0]); }),
              HasSubstr("/latency/2: never used"));
}

TEST(Policy, NamesTheNearestKeyForAMisspeltOne) {
  EXPECT_THAT(error_of([](Json& j) { j["latency"][1]["ratio_limt"] = 2; }),
              HasSubstr("ratio_limit"));
}

// With a misspelt name the rule would match nothing, and a later, looser one would judge its cases.
TEST(Policy, RefusesNamesThatNothingHas) {
  EXPECT_THAT(error_of([](Json& j) { j["latency"][0]["scheme"] = "fp8_blok"; }),
              AllOf(HasSubstr("/latency/0/scheme"), HasSubstr("fp8_block")));
  EXPECT_THAT(error_of([](Json& j) { j["latency"][0]["scheme"] = "fp8_block_fnus"; }),
              HasSubstr("unknown options"));
  EXPECT_THAT(error_of([](Json& j) { j["latency"][0]["op"] = "fused_mo"; }),
              AllOf(HasSubstr("/latency/0/op"), HasSubstr("fused_moe")));
  EXPECT_THAT(error_of([](Json& j) { j["error"][0]["inputs"] = "exakt"; }),
              AllOf(HasSubstr("/error/0/inputs"), HasSubstr("exact")));
  for (const char* pattern : {"fp8_blo*", "fp8_bloc?", "mxfp8", "fp8_block_fnuz"}) {
    EXPECT_EQ(error_of([&](Json& j) { j["latency"][0]["scheme"] = pattern; }), "no error")
        << pattern;
  }
}

TEST(Policy, RefusesLimitsThatLimitNothing) {
  EXPECT_THAT(error_of([](Json& j) { j["error"][0]["relative_l2"] = 1e9; }),
              HasSubstr("/error/0/relative_l2"));
  EXPECT_THAT(error_of([](Json& j) { j["latency"][1]["floor_us"] = 1e99; }),
              HasSubstr("/latency/1/floor_us"));
}

TEST(Policy, RefusesNumbersThatMakeNoSense) {
  EXPECT_THAT(error_of([](Json& j) { j["latency"][1]["ratio_limit"] = 0.9; }),
              HasSubstr("/latency/1/ratio_limit"));
  EXPECT_THAT(error_of([](Json& j) { j["latency"][1]["outlier_ratio"] = 0.9; }),
              HasSubstr("/latency/1/outlier_ratio"));
  EXPECT_THAT(error_of([](Json& j) { j["confidence"] = 95; }), HasSubstr("/confidence"));
  EXPECT_THAT(error_of([](Json& j) {
                j["latency"][0]["tokens"] = {16, 1};
              }),
              HasSubstr("/latency/0/tokens/1"));
  EXPECT_THAT(error_of([](Json& j) { j["latency"][0]["tokens"] = {16}; }),
              HasSubstr("[from, to], both included"));
  EXPECT_THAT(error_of([](Json& j) { j["error"][1]["growth_limit"] = 0.5; }),
              HasSubstr("/error/1/growth_limit"));
}

TEST(Policy, HoldsKnownIssuesWithAReasonAndADate) {
  Json json = valid();
  json["controls"] = true;
  json["known_issues"] = {{{"case", "*/M=1"}, {"reason", "driver 575"}, {"expires", "2026-12-31"}}};
  const Policy policy = policy_from_json(json, "p.json");
  EXPECT_TRUE(policy.controls);
  ASSERT_EQ(policy.known_issues.size(), 1u);
  EXPECT_EQ(policy.known_issues[0].subject, "*");
  EXPECT_EQ(policy.known_issues[0].expires, "2026-12-31");
  const auto with = [](const char* key, const char* value) {
    return error_of([&](Json& j) {
      j["known_issues"] = {{{"case", "*"}, {"reason", "r"}, {"expires", "2026-12-31"}}};
      j["known_issues"][0][key] = value;
    });
  };
  for (const char* date : {"2026-02-30", "31.12.2026", "2026-12-1", "2026-13-01", "soon", ""})
    EXPECT_THAT(with("expires", date), HasSubstr("/known_issues/0/expires")) << date;
  EXPECT_THAT(with("reason", ""), HasSubstr("/known_issues/0/reason"));
  EXPECT_THAT(with("expire", "2026-12-31"), HasSubstr("expires"));
}

TEST(Policy, RefusesAnotherSchema) {
  EXPECT_THAT(error_of([](Json& j) { j["schema"] = "moegauge.suite/1"; }),
              HasSubstr("/schema: not a policy that this version reads; \"moegauge.policy/1\""));
}

TEST(Policy, EveryShippedFileLoads) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("suites/policies")) {
    const Policy policy = load_policy(entry.path());
    EXPECT_EQ(policy.name, entry.path().stem());
    ++files;
  }
  EXPECT_GE(files, 4);
}

TEST(Policy, IsFoundByNameOrByPath) {
  EXPECT_EQ(find_policy("default", "."), "./suites/policies/default.json");
  EXPECT_EQ(find_policy("suites/policies/default.json", "/nowhere"),
            "suites/policies/default.json");
  try {
    find_policy("defualt", ".");
    FAIL() << "found";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "--policy: no file and no shipped policy is called \"defualt\"; did you mean "
                 "\"default\"?");
  }
}

// 1.03 and 0.01: docs/method.md.
TEST(Policy, TheDefaultCatchesFivePercentMoreError) {
  const Policy policy = load_policy("suites/policies/default.json");
  EXPECT_LT(policy.error_rule({}).growth_limit, 1.05);
  EXPECT_FALSE(policy.total) << "what ships with the schemes";
}

}  // namespace
}  // namespace moegauge
