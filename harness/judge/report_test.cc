#include "harness/judge/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/judge/fake_result.h"
#include "harness/judge/numbers.h"

namespace moegauge {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const ReportTitle title = {.result = "r.json", .baseline = "base.json"};

// One failure, one improvement, one pass; numbers as a gate would give them.
Judgement judgement() {
  const auto latency = [](double result_us, double baseline_us) {
    const double ratio = result_us / baseline_us;
    return LatencyJudgement{.result_us = result_us,
                            .baseline_us = baseline_us,
                            .ratio = ratio,
                            .low = ratio * 0.96,
                            .high = ratio * 1.04,
                            .limit = 1.05,
                            .smallest_failing_ratio = 1.092,
                            .within_runs = 0.002,
                            .between_runs = 0.0198};
  };
  return {.policy = "default",
          .cases = {{.id = "op/pass/M=1",
                     .verdict = Verdict::pass,
                     .findings = {{Verdict::pass, "latency", "nothing to do"}},
                     .latency = latency(100, 100)},
                    {.id = "op/gain/M=1",
                     .verdict = Verdict::improved,
                     .findings = {{Verdict::improved, "latency", "faster: record it"}},
                     .latency = latency(50, 100)},
                    {.id = "op/bad|<name>/M=1",
                     .verdict = Verdict::fail,
                     .findings = {{Verdict::fail, "latency", "slower: find the cause"}},
                     .latency = latency(1235.0, 100),
                     .errors = {{.name = "error.implementation.relative_l2",
                                 .value = 0.002,
                                 .limit = 0.003}},
                     .changes = {"other config values"},
                     .repro = "moegauge run --iterate X"}},
          .geometric_mean_ratio = 1.5};
}

TEST(Numbers, ReadAsAPersonWouldWriteThem) {
  EXPECT_EQ(format_us(59.123), "59.12 us");
  EXPECT_EQ(format_us(0.51234), "0.512 us");
  EXPECT_EQ(format_us(12345.6), "12346 us");
  EXPECT_EQ(format_us(1000), "1000 us");
  EXPECT_EQ(format_us(std::nullopt), "-");
  EXPECT_EQ(format_ratio(1.0321), "1.032x");
  EXPECT_EQ(format_percent(0.014), "1.40%");
}

TEST(TextReport, TabulatesEveryCaseAndExplainsThoseThatNeedAPerson) {
  EXPECT_EQ(text_report(judgement(), title),
            "r.json against base.json, policy default\n"
            "\n"
            "verdict     result  baseline    ratio  interval          case\n"
            "pass      100.0 us  100.0 us   1.000x  [0.960, 1.040]    op/pass/M=1\n"
            "improved  50.00 us  100.0 us   0.500x  [0.480, 0.520]    op/gain/M=1\n"
            "fail       1235 us  100.0 us  12.350x  [11.856, 12.844]  op/bad|<name>/M=1\n"
            "\n"
            "fail: op/bad|<name>/M=1\n"
            "    slower: find the cause\n"
            "    changed: other config values\n"
            "\n"
            "improved: op/gain/M=1\n"
            "    faster: record it\n"
            "\n"
            "geometric mean of the ratios (shown, never judged): 1.500x\n"
            "FAIL: 1 of 3 cases\n");
}

TEST(TextExplanation, ShowsTheNumbersBehindOneVerdict) {
  const std::string text = text_explanation(judgement().cases[2]);
  EXPECT_THAT(text, HasSubstr("standard error between processes          1.98%"));
  EXPECT_THAT(text, HasSubstr("smallest ratio that would have failed    1.092x"));
  EXPECT_THAT(text, HasSubstr("  error                             result  limit  baseline\n"
                              "  error.implementation.relative_l2   0.002  0.003         -\n"));
  EXPECT_THAT(text, HasSubstr("repeat with: moegauge run --iterate X"));
}

TEST(MarkdownReport, PutsTheWorstFirstAndFoldsTheRest) {
  const std::string text = markdown_report(judgement(), title);
  EXPECT_LT(text.find("| fail |"), text.find("| improved |"));
  EXPECT_LT(text.find("| improved |"),
            text.find("<details><summary>1 case needs nobody</summary>"));
  EXPECT_LT(text.find("<details>"), text.find("| pass |"));
  EXPECT_THAT(text, HasSubstr("**FAIL: 1 of 3 cases** (policy default)"));
  EXPECT_THAT(text, HasSubstr("| fail | 1235 us | 100.0 us | 12.350x | [11.856, 12.844] | "
                              "`op/bad\\|<name>/M=1` |"));
  EXPECT_THAT(text, HasSubstr("  - changed: other config values"));
}

// Of `count` cases, each of which failed with a sentence of its own.
Judgement failing(std::size_t count, const std::string& facts) {
  Judgement many{.policy = "default"};
  for (std::size_t i = 0; i < count; ++i) {
    CaseVerdict verdict{.id = "op/case" + std::to_string(i) + "/M=1", .verdict = Verdict::fail};
    verdict.findings = {{Verdict::fail, "latency", facts + std::to_string(i), "find the cause"}};
    verdict.latency = LatencyJudgement{.ratio = 1 + 0.01 * static_cast<double>(i)};
    many.cases.push_back(std::move(verdict));
  }
  return many;
}

TEST(MarkdownReport, StaysBelowSixtyKilobytesAndLeavesOutTheLeastBad) {
  const Judgement many = failing(2000, "slower: by ");
  const std::string text = markdown_report(many, title);
  EXPECT_LE(text.size(), 60'000u);
  EXPECT_GT(text.size(), 50'000u) << "the room is used";
  EXPECT_THAT(text,
              AllOf(HasSubstr("**FAIL: 2000 of 2000 cases**"), HasSubstr("op/case1999/"),
                    Not(HasSubstr("op/case0/")), HasSubstr(" more that need a person, left")));
}

TEST(MarkdownReport, StaysBelowSixtyKilobytesWhateverItsPartsHold) {
  Judgement odd = failing(40, std::string(20'000, '|'));
  odd.policy = std::string(70'000, 'p');
  odd.notes.assign(500, std::string(3000, '*'));
  odd.means.assign(500, "mean");
  const ReportTitle long_title{.result = std::string(9000, '`'),
                               .baseline = std::string(9000, 'b')};
  const std::string text = markdown_report(odd, long_title);
  EXPECT_LE(text.size(), 60'000u);
  EXPECT_THAT(text, HasSubstr("op/case39/"));
}

TEST(MarkdownReport, FoldsOnlyAsManyOfTheRestAsThereIsRoomFor) {
  Judgement well = failing(3000, "");
  for (CaseVerdict& verdict : well.cases) {
    verdict.verdict = verdict.findings[0].verdict = Verdict::pass;
  }
  const std::string text = markdown_report(well, title);
  EXPECT_LE(text.size(), 60'000u);
  EXPECT_THAT(text, AllOf(HasSubstr("<summary>3000 cases need nobody</summary>"),
                          HasSubstr(" more of these, left out here"), HasSubstr("</details>")));
}

TEST(JunitReport, CountsAndEscapes) {
  const std::string xml = junit_report(judgement(), title);
  EXPECT_THAT(xml, HasSubstr("<testsuites tests=\"3\" failures=\"1\" errors=\"0\">"));
  EXPECT_THAT(xml, HasSubstr("name=\"op/bad|&lt;name&gt;/M=1\">"));
  EXPECT_THAT(xml, HasSubstr("<failure message=\"slower: find the cause\" type=\"fail\">"));
  EXPECT_THAT(xml, HasSubstr("<testcase classname=\"moegauge.gate\" name=\"op/pass/M=1\"/>"));
}

TEST(JunitReport, OfNothingIsAnErrorAndNoGreenSuite) {
  const std::string xml = junit_report({.policy = "default"}, title);
  EXPECT_THAT(xml, HasSubstr("errors=\"1\""));
  EXPECT_THAT(xml, HasSubstr("<error message=\"NO VERDICT: no case matched\""));
}

TEST(GithubAnnotations, AreOneLineEach) {
  const std::string text = github_annotations(judgement());
  EXPECT_THAT(text,
              HasSubstr("::error title=fail%3A op/bad|<name>/M=1::slower: find the cause%0A"));
  EXPECT_THAT(text, HasSubstr("::notice title=improved%3A op/gain/M=1::"));
  EXPECT_THAT(text, Not(HasSubstr("op/pass")));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

// GitHub shows ten of a level in a step, without a word of the others.
TEST(GithubAnnotations, AreAtMostTenOfALevelAndSayHowManyMoreThereAre) {
  const std::string text = github_annotations(failing(2000, "slower: by "));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10);
  EXPECT_THAT(text, AllOf(HasSubstr("op/case1999/"), HasSubstr("1991 more; the step summary")));
}

TEST(JsonReport, HoldsWhatTheTextSays) {
  const auto json = json_report(judgement(), title);
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["cases"][2]["findings"][0]["sentence"], "slower: find the cause");
  EXPECT_EQ(json["cases"][0]["latency"]["ratio"], 1.0);
}

TEST(SideBySideReport, NamesBothFilesAndTheDirectionOfTheRatio) {
  Policy policy{
      .confidence = 0.95, .latency = {{.ratio_limit = 1.05, .between_runs = 0.014}}, .error = {{}}};
  Result b = fake_result();
  scale_latency(b.cases[0], 2);
  b.comparisons = {{.point = "p",
                    .a = "tuned",
                    .b = "default",
                    .ratio = 0.9,
                    .ci_low = 0.89,
                    .ci_high = 0.91,
                    .pairs = 9}};
  const SideBySide table = compare(fake_result(), b, policy);
  const std::string text = text_report(table, title);
  EXPECT_THAT(text, HasSubstr("A = base.json\nB = r.json\n"));
  EXPECT_THAT(text, HasSubstr("slower  100.0 us  200.0 us  2.000x  ["));
  EXPECT_THAT(text, HasSubstr("rivals within B, measured in turn:\n"));
  EXPECT_THAT(text, HasSubstr("faster    0.900x  [0.890, 0.910]  tuned / default\n"));
  EXPECT_THAT(markdown_report(table, title),
              HasSubstr("| slower | 100.0 us | 200.0 us | 2.000x | ["));
  EXPECT_EQ(json_report(table, title)["cases"][0]["b_is"], "slower");
}

}  // namespace
}  // namespace moegauge
