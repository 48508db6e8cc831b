#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/judge/judge_testing.h"
#include "harness/statistics/two_stage.h"

namespace moegauge {
namespace {

using testing::HasSubstr;

// Processes that differ by about 1% (standard deviation) in each case, first to last.
std::vector<Result> processes_of(std::size_t count, double slower = 1) {
  static constexpr double off[] = {0.012, -0.012, 0.004, -0.004, 0.010, -0.010, 0.0, 0.008, -0.008};
  std::vector<Result> list(count, fake_result());
  for (std::size_t i = 0; i < count; ++i) {
    for (CaseRecord& record : list[i].cases) scale_latency(record, std::exp(off[i % 9]));
    scale_latency(list[i].cases[0], slower);
  }
  return list;
}

Judgement judged_by(const std::vector<Result>& now, const std::vector<Result>& then,
                    const Calibration& calibration = {}, const Policy& by = policy()) {
  const Evidence evidence = gather(now, then, calibration);
  return judge(representative(now), representative(then), by, limits, "*", evidence);
}

TEST(ProcessGate, OfManyProcessesFindsASlowDownThatOnePairCannotSee) {
  const Judgement judgement = judged_by(processes_of(9, 1.04), processes_of(18));
  EXPECT_EQ(judgement.cases[0].verdict, Verdict::fail);
  EXPECT_EQ(judgement.cases[0].latency->change, Change::slower);
  EXPECT_EQ(judgement.cases[1].verdict, Verdict::pass);
  EXPECT_EQ(judgement.cases[1].latency->change, Change::same);
  EXPECT_THAT(judgement.cases[0].sentence(), HasSubstr("9 processes against 18"));
  EXPECT_LE(judgement.cases[0].latency->smallest_failing_ratio, 1.04);
  // The same slow-down in one process a side: not seen, and not called the same.
  const Judgement one = judged(processes_of(1, 1.04)[0], processes_of(1)[0]);
  EXPECT_EQ(one.cases[0].verdict, Verdict::inconclusive);
  EXPECT_EQ(one.cases[1].latency->change, Change::inconclusive);
}

// A kernel that is wrong in one process of three is wrong.
TEST(ProcessGate, JudgesTheWorstErrorsOfAllProcesses) {
  std::vector<Result> now = processes_of(3);
  auto& error = std::get<Measured>(now[1].cases[0].outcome).check.error.implementation;
  error.worst_token = 0.9;
  error.worst_token_row = 5;
  const Judgement judgement = judged_by(now, processes_of(9));
  EXPECT_EQ(judgement.cases[0].verdict, Verdict::fail);
  EXPECT_THAT(judgement.cases[0].sentence(), HasSubstr("worst_token is 0.9"));
  EXPECT_EQ(judgement.cases[1].verdict, Verdict::pass);
}

TEST(ProcessGate, SeesAnotherExecutedSchemeInAnyProcess) {
  std::vector<Result> now = processes_of(3);
  auto& check = std::get<Measured>(now[2].cases[0].outcome).check;
  check.executed_scheme = "bf16_of_another_kind";
  const Judgement judgement = judged_by(now, processes_of(9));
  EXPECT_NE(judgement.cases[0].verdict, Verdict::pass);
  EXPECT_THAT(judgement.cases[0].sentence(), HasSubstr("bf16_of_another_kind"));
}

TEST(ProcessGate, OneProcessIsNeverCalledTheSame) {
  const Judgement judgement = judged_by(processes_of(1), processes_of(18));
  for (const CaseVerdict& verdict : judgement.cases) {
    EXPECT_EQ(verdict.latency->change, Change::inconclusive);
    EXPECT_GT(verdict.latency->smallest_failing_ratio, 1.01);
  }
}

// Two processes: one outlier would decide, so that only what is surely beyond the limit fails.
TEST(ProcessGate, AsksForConfirmationWhereTwoProcessesAreSlower) {
  const Judgement judgement = judged_by(processes_of(2, 1.055), processes_of(18));
  EXPECT_EQ(judgement.cases[0].verdict, Verdict::inconclusive);
  EXPECT_THAT(judgement.cases[0].sentence(),
              HasSubstr("fresh pairs with moegauge compare --exec-a"));
  EXPECT_EQ(judged_by(processes_of(2, 1.3), processes_of(18)).cases[0].verdict, Verdict::fail);
}

// One process in fifty may be slow by as much for no cause of the kernel's.
TEST(ProcessGate, HoldsFewProcessesToTheOutliersThatThePolicyAllows) {
  Policy sure = policy();
  sure.latency.back().outlier_ratio = 1.35;
  const auto one = [&](double slower, std::size_t baseline) {
    return judged_by(processes_of(1, slower), processes_of(baseline), {}, sure).cases[0];
  };
  for (const std::size_t baseline : {std::size_t{1}, std::size_t{18}}) {
    EXPECT_EQ(one(1.3, baseline).verdict, Verdict::inconclusive);
    EXPECT_EQ(one(1.6, baseline).verdict, Verdict::fail);
    EXPECT_EQ(one(0.5, baseline).verdict, Verdict::improved);
    EXPECT_GT(one(1.3, baseline).latency->smallest_failing_ratio, 1.35);
  }
}

TEST(ProcessGate, TakesNoOutlierAmongSeveralProcessesForAChange) {
  std::vector<Result> now = processes_of(5);
  scale_latency(now[1].cases[0], 1.3);
  const CaseVerdict one = judged_by(now, processes_of(18)).cases[0];
  EXPECT_NE(one.verdict, Verdict::fail) << one.sentence();
  EXPECT_EQ(judged_by(processes_of(5, 1.06), processes_of(18)).cases[0].verdict, Verdict::fail);
}

// One case shows nothing of how others differ, so that only its own processes can say how many more
// there must be: two of them say too little.
TEST(ProcessGate, SaysWhereProcessesAreTooFewToPlanAConfirmation) {
  const auto first_case = [](std::vector<Result> processes) {
    for (Result& result : processes) result.cases.resize(1);
    return processes;
  };
  const Judgement two = judged_by(first_case(processes_of(2)), first_case(processes_of(1)));
  EXPECT_EQ(two.cases[0].verdict, Verdict::inconclusive);
  EXPECT_EQ(two.cases[0].latency->pairs_needed, 0u);
  EXPECT_THAT(two.cases[0].sentence(),
              HasSubstr("measure the case in 4 or more processes on each side, since so few do not "
                        "show how much they differ"));
  const Judgement four = judged_by(first_case(processes_of(4)), first_case(processes_of(4)));
  EXPECT_GE(four.cases[0].latency->pairs_needed, least_pairs);
  EXPECT_LT(four.cases[0].latency->pairs_needed, 1000u);
}

TEST(ProcessGate, TakesTheSpreadFromACalibrationAndSaysSo) {
  const Calibration calibration = calibrate(processes_of(9));
  const Judgement judgement = judged_by(processes_of(1), processes_of(1), calibration);
  EXPECT_EQ(judgement.cases[0].latency->spread_from, "calibration of 9 processes");
  EXPECT_NEAR(judgement.cases[0].latency->between_processes, 0.009, 0.002);
  EXPECT_THAT(judged(fake_result(), fake_result()).cases[0].latency->spread_from,
              HasSubstr("neither calibration nor history"));
}

TEST(ProcessGate, FailsWhereOneOfSeveralProcessesWasNotOk) {
  std::vector<Result> now = processes_of(3);
  now[2].cases[1].outcome = Unmeasured{.status = Status::crashed, .reason = "killed by SIGSEGV"};
  EXPECT_EQ(judged_by(now, processes_of(5)).cases[1].verdict, Verdict::fail);
}

TEST(Evidence, LeavesOutProcessesOfAnotherDevice) {
  std::vector<Result> now = processes_of(3);
  now[1].cases[0].device = "another";
  const Evidence evidence = gather(now, processes_of(2), {});
  EXPECT_EQ(evidence.at(now[0].cases[0].id()).now.size(), 2u);
  EXPECT_EQ(evidence.at(now[0].cases[1].id()).now.size(), 3u);
}

}  // namespace
}  // namespace moegauge
