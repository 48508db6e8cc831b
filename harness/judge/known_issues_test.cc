#include "harness/judge/known_issues.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/judge/judge_testing.h"
#include "harness/judge/report.h"

namespace moegauge {
namespace {

using testing::HasSubstr;

// M = 16 is 30% slower; its issue holds to the end of the year.
struct Slower {
  Policy with = policy();
  Result result = fake_result();
  Slower() {
    scale_latency(result.cases[1], 1.3);
    with.known_issues = {{.match = "*/M=16", .reason = "driver 575", .expires = "2026-12-31"}};
  }
  Judgement on(const std::string& today) const {
    Judgement judgement = judged(result, fake_result(), with);
    apply_known_issues(judgement, with, today);
    return judgement;
  }
};

TEST(KnownIssues, ExcuseAFailureUntilTheirLastDayAndSayWhy) {
  const Judgement judgement = Slower().on("2026-12-31");
  EXPECT_EQ(judgement.cases[0].verdict, Verdict::pass);
  EXPECT_EQ(judgement.cases[1].verdict, Verdict::known_issue);
  EXPECT_THAT(judgement.cases[1].sentence(),
              HasSubstr("known until 2026-12-31 (driver 575): slower"));
  EXPECT_EQ(exit_code(judgement), 0);
  EXPECT_EQ(conclusion(judgement), "PASS: 2 cases; 1 known issue");
  EXPECT_THAT(junit_report(judgement, {}), HasSubstr("<skipped message=\"known until"));
  EXPECT_THAT(text_report(judgement, {}), HasSubstr("known issue: fused_moe/"));
}

TEST(KnownIssues, FailOnceExpiredAlsoWhereTheCaseIsWellAgain) {
  Slower slower;
  Judgement judgement = slower.on("2027-01-01");
  EXPECT_EQ(judgement.cases[1].verdict, Verdict::fail);
  slower.result = fake_result();
  judgement = slower.on("2027-01-01");
  EXPECT_EQ(judgement.cases[1].verdict, Verdict::fail);
  EXPECT_THAT(judgement.cases[1].sentence(),
              HasSubstr("(driver 575) expired on 2026-12-31: mend it"));
  EXPECT_EQ(exit_code(judgement), 1);
}

TEST(KnownIssues, AreNotedWhereTheyCoverNothing) {
  Slower slower;
  EXPECT_THAT(slower.on("2026-12-01").notes, testing::IsEmpty());
  slower.with.known_issues[0].subject = "error.*";
  EXPECT_THAT(slower.on("2026-12-01").notes,
              testing::ElementsAre(HasSubstr("(driver 575) covered no failure")));
  slower.with.known_issues[0].match = "*/no-such-model/*";
  const Judgement judgement = slower.on("2026-12-01");
  EXPECT_THAT(judgement.notes, testing::ElementsAre(HasSubstr("matches no case")));
  EXPECT_EQ(exit_code(judgement), 1) << "the failure itself stays one";
}

TEST(KnownIssues, ExcuseOnlyTheirSubject) {
  Slower slower;
  slower.with.known_issues[0].subject = "error.*";
  EXPECT_EQ(slower.on("2026-12-01").cases[1].verdict, Verdict::fail);
  slower.with.known_issues[0].subject = "lat*";
  EXPECT_EQ(slower.on("2026-12-01").cases[1].verdict, Verdict::known_issue);
}

TEST(KnownIssues, AreNoPassWhereNothingElseIsJudged) {
  Slower slower;
  slower.result.cases = {slower.result.cases[1]};
  Judgement judgement = judge(slower.result, fake_result(), slower.with, limits, "*/M=16");
  apply_known_issues(judgement, slower.with, "2026-12-01");
  EXPECT_EQ(exit_code(judgement), 4);
}

TEST(Controls, FailWhereTheyBecameFaster) {
  Policy controls = policy();
  controls.controls = true;
  Result faster = fake_result();
  scale_latency(faster.cases[0], 0.7);
  EXPECT_EQ(judged(faster, fake_result()).cases[0].verdict, Verdict::improved);
  const Judgement judgement = judged(faster, fake_result(), controls);
  EXPECT_EQ(judgement.cases[0].verdict, Verdict::fail);
  EXPECT_THAT(judgement.cases[0].sentence(), HasSubstr("a control must not change: faster"));
  EXPECT_THAT(judgement.cases[0].sentence(), testing::Not(HasSubstr("baseline, so that")));
  EXPECT_EQ(judgement.cases[1].verdict, Verdict::pass);
}

}  // namespace
}  // namespace moegauge
