// `moegauge gate` on results of `moegauge ingest`, from the command line to the exit code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/commands/command_line_testing.h"
#include "reference/base/text_file.h"

namespace moegauge {
namespace {

using testing::HasSubstr;

constexpr const char* fixtures = "harness/endtoend/testdata/";

class EndToEndGate : public CommandLine {
 protected:
  void ingest(const std::string& fixture, const std::string& variant, const std::string& out) {
    ASSERT_EQ(run({"ingest", fixtures + fixture, "--variant", variant, "--out", path(out)}), 0)
        << err_;
  }
  // A shipped policy with other rules for serving and accuracy.
  std::string policy(const std::string& rules) {
    return write_text("policy.json",
                      R"({"schema": "moegauge.policy/1", "name": "mine", "confidence": 0.95,
      "strict": false, "latency": [{"ratio_limit": 1.05, "between_runs": 0.014, "floor_us": 0.5}],
      "error": [{"growth_limit": 1.03, "growth_floor": 1e-6}], )" +
                          rules + "}");
  }
};

TEST_F(EndToEndGate, ReportsEverySixthOfATableByItself) {
  ingest("tuned_by_length.txt", "untuned", "then.json");
  ingest("tuned_by_length.txt", "tuned", "now.json");
  EXPECT_EQ(gate("now.json", "then.json",
                 {"--filter", "*qwen3-30b*ttft*", "--markdown", path("gate.md"), "--junit",
                  path("gate.xml")}),
            1);
  EXPECT_THAT(out_, HasSubstr("982.67 ms    1176.38 ms  -16.5%"));
  EXPECT_THAT(out_, HasSubstr("fail      131106.68 ms  126817.12 ms   +3.4%"));
  EXPECT_THAT(out_, HasSubstr("arithmetic mean +0.83%, geometric mean ratio 0.858"));
  EXPECT_THAT(out_, HasSubstr("FAIL: 1 of 6 cases"));
  EXPECT_THAT(read_text_file(path("gate.md")), HasSubstr("geometric mean ratio 0.858"));
  EXPECT_THAT(read_text_file(path("gate.xml")), HasSubstr("tests=\"6\" failures=\"1\""));
}

TEST_F(EndToEndGate, DecidesAScoreByTheMarginOfThePolicy) {
  ingest("maverick.txt", "1", "then.json");
  ingest("maverick.txt", "2", "now.json");
  const auto code = [&](const char* margin) {
    return gate("now.json", "then.json",
                {"--policy", policy(R"("accuracy": [{"margin": )" + std::string(margin) + "}]"),
                 "--filter", "*flexible*"});
  };
  EXPECT_EQ(code("0.025"), 0) << out_ << err_;
  EXPECT_THAT(out_, HasSubstr("[-2.15%, +1.25%]"));
  EXPECT_EQ(code("0.02"), 4);  // nothing but an inconclusive score
  EXPECT_THAT(out_, HasSubstr("questions a side, which would tell scores that are equal"));
}

TEST_F(EndToEndGate, HoldsControlsUnderTheShippedPolicy) {
  ingest("control_before_after.txt", "Before", "then.json");
  ingest("control_before_after.txt", "After", "now.json");
  EXPECT_EQ(gate("now.json", "then.json", {"--policy", "must-not-change"}), 0);
  EXPECT_THAT(out_, HasSubstr("-0.43%"));
  EXPECT_THAT(out_, HasSubstr("-0.84%"));
  Result moved = load_result(path("then.json")).result;
  moved.end_to_end[0].numbers["total_tokens_per_s_per_gpu"] *= 1.02;
  write("moved.json", moved);
  EXPECT_EQ(gate("moved.json", "then.json", {"--policy", "must-not-change"}), 1);
  EXPECT_THAT(out_, HasSubstr("a control must not change"));
}

TEST_F(EndToEndGate, ExplainsAndPrintsJson) {
  ingest("scout.txt", "2", "then.json");
  ingest("scout.txt", "1", "now.json");
  EXPECT_EQ(gate("now.json", "then.json", {"--filter", "eval/*", "--explain", "*strict*"}), 4);
  EXPECT_THAT(out_, HasSubstr("standard error, result"));
  EXPECT_THAT(out_, HasSubstr("loss that would have been seen, power 80%"));
  gate("now.json", "then.json", {"--json"});
  const auto json = nlohmann::json::parse(out_);
  EXPECT_EQ(json["cases"][0]["number"]["name"], "input_tokens_per_s");
  EXPECT_EQ(json["cases"][0]["number"]["baseline"], 31560.01);
}

TEST_F(EndToEndGate, CompareShowsServingAndScoresSideBySide) {
  ingest("tuned_by_length.txt", "untuned", "then.json");
  ingest("tuned_by_length.txt", "tuned", "now.json");
  const auto compare = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"compare", path("then.json"), path("now.json"), "--filter",
                                      "*qwen3-30b*ttft*"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  EXPECT_EQ(compare({"--markdown", path("c.md")}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("better    1176.38 ms     982.67 ms  -16.5%"));
  EXPECT_THAT(out_, HasSubstr("worse   126817.12 ms  131106.68 ms   +3.4%"));
  EXPECT_THAT(out_, HasSubstr("geometric mean ratio 0.858"));
  EXPECT_THAT(read_text_file(path("c.md")),
              HasSubstr("| worse | 126817.12 ms | 131106.68 ms | +3.4% |"));
  EXPECT_EQ(compare({"--json"}), 0);
  EXPECT_EQ(nlohmann::json::parse(out_)["serving_and_accuracy"][0]["b_is"], "better");
  // Scores are not worse, or it cannot be told.
  ingest("maverick.txt", "1", "s1.json");
  ingest("maverick.txt", "2", "s2.json");
  EXPECT_EQ(run({"compare", path("s1.json"), path("s2.json"), "--filter", "*flexible*"}), 0);
  EXPECT_THAT(out_, HasSubstr("[-2.15%, +1.25%]"));
  EXPECT_EQ(run({"compare", path("s1.json"), path("now.json")}), 4);
}

TEST_F(EndToEndGate, KnownIssuesCoverServingToo) {
  ingest("scout.txt", "2", "then.json");
  ingest("scout.txt", "1", "now.json");
  const std::string known = policy(
      R"("accuracy": [{"margin": 0.02}], "known_issues": [{"case": "serve/*", "reason": "slower backend", "expires": "2999-12-31"}])");
  EXPECT_EQ(gate("now.json", "then.json", {"--policy", known}), 0) << out_;
  EXPECT_THAT(out_, HasSubstr("known until 2999-12-31 (slower backend)"));
}

TEST_F(EndToEndGate, RefusesRulesThatLeaveSomethingOut) {
  ingest("scout.txt", "1", "now.json");
  const std::string bad = policy(R"("serving": [{"case": "*.p99", "band": 0.1}])");
  EXPECT_EQ(gate("now.json", "now.json", {"--policy", bad}), 2);
  EXPECT_THAT(err_, HasSubstr("/serving: some cases have no rule"));
  EXPECT_EQ(gate("now.json", "now.json", {"--policy", policy(R"("accuracy": [{"margins": 0.1}])")}),
            2);
  EXPECT_THAT(err_, HasSubstr("unknown key \"margins\""));
}

}  // namespace
}  // namespace moegauge
