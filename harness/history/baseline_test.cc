#include "harness/history/baseline.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "harness/history/history_testing.h"
#include "harness/judge/judge_testing.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class HistoryGate : public HistoryFile {
 protected:
  Judgement gate(const Result& result, const HistoryBaselineSettings& settings = {},
                 const Calibration& calibration = {}) const {
    const auto store = open();
    const std::vector<Result> results = {result};
    const HistoryBaseline baseline = history_baseline(*store, results, calibration, settings);
    const auto against = [&](const HistorySide& side) {
      return judge(result, side.result, policy(), limits, settings.filter, side.evidence);
    };
    return judge_against(baseline, against(baseline.rolling), against(baseline.anchor),
                         "accept it");
  }
  // Returns the gate's exit code.
  int gate_and_add(const Result& result) const {
    if (!std::filesystem::exists(file_)) open(HistoryAccess::create);
    const Judgement judgement = gate(result);
    const auto store = open();
    const std::set<std::string> held =
        to_hold_back(judgement, history_baseline(*store, {result}, {}, {}));
    RunSummary summary = summarise(result, {}, "r.json");
    for (CaseSummary& one : summary.cases) one.point.held = held.contains(one.id);
    store->add(summary, "me@here", 1);
    return exit_code(judgement);
  }
  std::vector<std::string> accept(const Result& result, const std::string& cases) const {
    return accept_into_history(*open(), result, "r.json", cases, "on purpose", "me", 77);
  }
  static std::function<void(Result&)> slower(double factor) {
    return [factor](Result& result) { scale_latency(result.cases[0], factor); };
  }
  static std::string sentences(const CaseVerdict& verdict) {
    std::string text;
    for (const Finding& finding : verdict.findings) text += finding.sentence() + "\n";
    return text;
  }
};

TEST_F(HistoryGate, PassesWhatIsAsItWasAndNamesTheRuns) {
  add_nights(0, 30);
  const Judgement judgement = gate(night(31));
  EXPECT_EQ(exit_code(judgement), 0) << conclusion(judgement);
  EXPECT_THAT(
      sentences(judgement.cases[0]),
      AllOf(HasSubstr("against the last 10 ok runs (21 to 30): "),
            HasSubstr("against the anchor, run 1 of 2026-09-21 with 9 more of its kernel")));
  EXPECT_EQ(judgement.cases[0].latency->spread_from, "the baseline's runs, 20 runs of the history");
}

TEST_F(HistoryGate, FailsWhatIsSlowerThanTheLastRuns) {
  add_nights(0, 30);
  const Judgement judgement = gate(night(31, slower(1.10)));
  EXPECT_EQ(exit_code(judgement), 1);
  EXPECT_EQ(judgement.cases[0].verdict, Verdict::fail);
  EXPECT_THAT(judgement.cases[0].sentence(), HasSubstr("accept it"));
  EXPECT_NEAR(judgement.cases[0].latency->ratio, 1.10, 0.02);
  EXPECT_EQ(judgement.cases[1].verdict, Verdict::pass);
}

// 0.4% a night: none differs from the ten before it by more than a few percent.
TEST_F(HistoryGate, FailsDriftThatEachNightHides) {
  for (int number = 0; number < 40; ++number) add(night(number, slower(1 + 0.004 * number)));
  const Judgement judgement = gate(night(41, slower(1 + 0.004 * 41)));
  const CaseVerdict& drifted = judgement.cases[0];
  EXPECT_EQ(drifted.verdict, Verdict::fail);
  for (const Finding& finding : drifted.findings) {
    const bool anchor = finding.facts.starts_with("against the anchor");
    EXPECT_EQ(finding.verdict == Verdict::fail, anchor) << finding.sentence();
  }
  EXPECT_GT(drifted.latency->ratio, 1.10) << "the table shows what failed";
  EXPECT_EQ(judgement.cases[1].verdict, Verdict::pass);
}

TEST_F(HistoryGate, OfAFasterAnchorDecidesNothing) {
  add_nights(0, 10, slower(1.2));
  add_nights(10, 30);
  const Judgement judgement = gate(night(31));
  EXPECT_EQ(judgement.cases[0].verdict, Verdict::pass);
  EXPECT_THAT(sentences(judgement.cases[0]), HasSubstr("against the anchor, run 1"));
}

TEST_F(HistoryGate, GoesByTheAcceptedRunFromThenOn) {
  add_nights(0, 20);
  const Result changed = night(20, slower(1.10));
  add(changed);
  EXPECT_EQ(exit_code(gate(night(21, slower(1.10)))), 1);
  EXPECT_THAT(accept(changed, "*/M=1"),
              ElementsAre(changed.cases[0].id() + " on fake device: anchor run 1 -> run 21"));
  const auto anchors = open()->anchors();
  EXPECT_EQ(anchors.back().run, 21);
  EXPECT_EQ(anchors.back().reason, "on purpose");
  EXPECT_EQ(anchors.back().who, "me");
  EXPECT_EQ(anchors.back().set_at, 77);
  const Judgement judgement = gate(night(21, slower(1.10)));
  EXPECT_EQ(exit_code(judgement), 0) << conclusion(judgement);
  EXPECT_THAT(sentences(judgement.cases[0]), HasSubstr("against run 21: "));
  EXPECT_THAT(sentences(judgement.cases[1]), HasSubstr("against the last 10 ok runs (12 to 21): "));
}

TEST_F(HistoryGate, AcceptsOnlyWhatIsOkAndInTheHistory) {
  add_nights(0, 2);
  const auto refusal = [&](const Result& result, const std::string& cases) -> std::string {
    try {
      accept(result, cases);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal(night(9), "*"), HasSubstr("the history does not hold it"));
  EXPECT_THAT(refusal(night(1), "nothing/*"), HasSubstr("no case of r.json has this id"));
  const Result broken = night(3, [](Result& result) {
    result.cases[0].outcome = Unmeasured{.status = Status::crashed, .reason = "signal 11"};
  });
  add(broken);
  EXPECT_THAT(refusal(broken, "*"), HasSubstr("only what is ok can be accepted"));
  EXPECT_THAT(open()->anchors(), SizeIs(3)) << "nothing was set";
}

TEST_F(HistoryGate, DoesNotCompareAResultWithItself) {
  add_nights(0, 12);
  const Result slow = night(12, slower(1.10));
  add(slow);
  const Judgement judgement = gate(slow);
  EXPECT_EQ(judgement.cases[0].verdict, Verdict::fail);
  EXPECT_THAT(sentences(judgement.cases[0]), HasSubstr("the last 10 ok runs (3 to 12)"));
}

TEST_F(HistoryGate, LeavesOutRunsThatAreNotOkOrSuspect) {
  add_nights(0, 3);
  add_nights(3, 6, [](Result& result) {
    std::get<Measured>(result.cases[0].outcome).suspect = true;
    result.cases[1].outcome = Unmeasured{.status = Status::timeout, .reason = "60 s passed"};
  });
  const Judgement judgement = gate(night(7));
  EXPECT_THAT(sentences(judgement.cases[0]), HasSubstr("the last 3 ok runs (1 to 3)"));
  EXPECT_THAT(sentences(judgement.cases[1]), HasSubstr("the last 3 ok runs (1 to 3)"));
  EXPECT_THAT(sentences(judgement.cases[2]), HasSubstr("the last 6 ok runs (1 to 6)"));
}

// As `gate --add` does: judged, then added with what is held back.
TEST_F(HistoryGate, HoldsBackWhatFailsSoThatItIsNoBaseline) {
  add_nights(0, 30);
  for (int number = 30; number < 45; ++number) {
    const Result slow = night(number, slower(1.10));
    EXPECT_EQ(gate_and_add(slow), 1) << "night " << number << " is as slow as the one before it";
  }
  const Judgement judgement = gate(night(46));
  EXPECT_THAT(sentences(judgement.cases[0]), HasSubstr("the last 10 ok runs (21 to 30)"));
  EXPECT_THAT(sentences(judgement.cases[1]), HasSubstr("the last 10 ok runs (36 to 45)"));
  EXPECT_EQ(judgement.cases[0].verdict, Verdict::pass) << "mended, it passes at once";
}

TEST_F(HistoryGate, HoldsBackAnErrorOverItsLimitAlsoAsAFirstRun) {
  const Result wrong = night(0, [](Result& result) {
    std::get<Measured>(result.cases[0].outcome).check.error.implementation.relative_l2 = 0.5;
  });
  gate_and_add(wrong);
  EXPECT_THAT(open()->anchors(), SizeIs(2)) << "the wrong case has none";
  add_nights(1, 2);
  EXPECT_THAT(open()->anchors(), SizeIs(3));
  EXPECT_THAT(sentences(gate(night(3)).cases[0]), HasSubstr("against run 2: "));
}

TEST_F(HistoryGate, HoldsBackWhatCannotBeComparedButNotWhatIsNew) {
  add_nights(0, 12);
  const auto other_scheme = [](Result& result) {
    std::get<Measured>(result.cases[0].outcome).check.executed_scheme = "fp16";
  };
  EXPECT_EQ(gate_and_add(night(12, other_scheme)), 4);
  EXPECT_EQ(gate_and_add(night(13, other_scheme)), 4) << "the second night is no pass either";
  const auto one_more = [](Result& result) { result.cases.push_back(fake_case(512, 2000)); };
  EXPECT_EQ(gate_and_add(night(14, one_more)), 4);
  const Judgement judgement = gate(night(15, one_more));
  EXPECT_EQ(exit_code(judgement), 0) << conclusion(judgement);
  EXPECT_THAT(sentences(judgement.cases[3]), HasSubstr("against run 15: "));
}

TEST_F(HistoryGate, OfAnAcceptedRunGoesOnFromItAlthoughItWasHeldBack) {
  add_nights(0, 20);
  const Result changed = night(20, slower(1.10));
  EXPECT_EQ(gate_and_add(changed), 1);
  accept(changed, "*/M=1");
  EXPECT_EQ(gate_and_add(night(21, slower(1.10))), 0);
  const Judgement judgement = gate(night(22, slower(1.10)));
  EXPECT_THAT(sentences(judgement.cases[0]),
              AllOf(HasSubstr("the last 2 ok runs (21 to 22)"), HasSubstr("the anchor, run 21")));
}

TEST_F(HistoryGate, HoldsBackARunThatWasAddedBeforeItWasJudged) {
  add_nights(0, 12);
  const Result slow = night(12, slower(1.10));
  add(slow);
  EXPECT_THAT(sentences(gate(night(13)).cases[0]), HasSubstr("(4 to 13)"));
  EXPECT_EQ(gate_and_add(slow), 1);
  EXPECT_THAT(open()->runs(), SizeIs(13)) << "it is there once";
  EXPECT_THAT(sentences(gate(night(13)).cases[0]), HasSubstr("(3 to 12)"));
  EXPECT_THAT(sentences(gate(night(13)).cases[1]), HasSubstr("(4 to 13)"));
}

// One fast night, which passes and counts, is one of ten: the nights after it are no slower for it.
TEST_F(HistoryGate, IsNotPoisonedByOneNightThatWasTooFast) {
  add_nights(0, 30);
  gate_and_add(night(30, slower(0.85)));
  for (int number = 31; number < 45; ++number) {
    const Judgement judgement = gate(night(number));
    EXPECT_NE(judgement.cases[0].verdict, Verdict::fail) << judgement.cases[0].sentence();
    EXPECT_EQ(gate_and_add(night(number)), 0);
  }
}

TEST_F(HistoryGate, AKnownIssueIsHeldBackToo) {
  add_nights(0, 12);
  const Result slow = night(12, slower(1.10));
  const auto store = open();
  const HistoryBaseline baseline = history_baseline(*store, {slow}, {}, {});
  // Whoever excuses a failure has not accepted it: apply_known_issues comes after.
  EXPECT_THAT(to_hold_back(gate(slow), baseline), ElementsAre(slow.cases[0].id()));
}

TEST_F(HistoryGate, PrefersRunsOfTheSameConfigAndElseSaysSo) {
  const auto tuned = [](Result& result) { result.cases[0].config.values["BLOCK_SIZE_M"] = 64; };
  add_nights(0, 5);
  EXPECT_THAT(sentences(gate(night(9, tuned)).cases[0]),
              HasSubstr("the last 5 ok runs (1 to 5), of another config"));
  add_nights(5, 8, tuned);
  EXPECT_THAT(sentences(gate(night(9, tuned)).cases[0]), HasSubstr("(6 to 8): "));
  EXPECT_THAT(sentences(gate(night(9)).cases[0]), HasSubstr("(1 to 5): "));
}

TEST_F(HistoryGate, FailsAnErrorThatGrewOrACaseThatIsNoLongerOk) {
  add_nights(0, 12);
  const Judgement judgement = gate(night(13, [](Result& result) {
    std::get<Measured>(result.cases[0].outcome).check.error.implementation.relative_l2 = 0.0011;
    result.cases[1].outcome = Unmeasured{.status = Status::crashed, .reason = "signal 11"};
  }));
  EXPECT_EQ(judgement.cases[0].verdict, Verdict::fail);
  EXPECT_THAT(judgement.cases[0].sentence(), HasSubstr("against the last 10 ok runs (3 to 12): "));
  EXPECT_EQ(judgement.cases[1].verdict, Verdict::fail);
}

TEST_F(HistoryGate, HasNoVerdictWithoutRunsOfTheDeviceOrTheCase) {
  add_nights(0, 12);
  const Judgement elsewhere = gate(night(13, [](Result& result) {
    for (CaseRecord& record : result.cases) record.device = "other device";
  }));
  EXPECT_EQ(exit_code(elsewhere), 4);
  EXPECT_THAT(elsewhere.cases[0].sentence(),
              HasSubstr("the history has no run of it on other device: add results"));
  const Judgement renamed =
      gate(night(13, [](Result& result) { result.cases[0].coordinates.model = "new"; }));
  EXPECT_EQ(exit_code(renamed), 4);
}

// Beside a case that passes, too: no device is no pass.
TEST_F(HistoryGate, HasNoVerdictWhereTheDeviceOfTheRunsBeforeIsMissing) {
  add_nights(0, 12);
  const auto without_device = [](Status status) {
    return night(13, [status](Result& result) {
      result.cases[0].outcome =
          Unmeasured{.status = status, .reason = "no device", .absent_backends = {"cpu"}};
      result.cases[0].device.clear();
    });
  };
  for (const Status status : {Status::unsupported, Status::infrastructure}) {
    const Judgement judgement = gate(without_device(status));
    EXPECT_EQ(exit_code(judgement), 4);
    EXPECT_EQ(judgement.cases[0].verdict, Verdict::no_verdict);
    EXPECT_TRUE(says_what_to_do(judgement.cases[0].findings[0])) << judgement.cases[0].sentence();
    EXPECT_EQ(judgement.cases[1].verdict, Verdict::pass);
  }
}

TEST_F(HistoryGate, FollowsRenames) {
  add_nights(0, 12);
  const auto renamed = [](Result& result) { result.cases[0].coordinates.model = "new"; };
  const Result now = night(13, renamed);
  open()->rename({{.from = fake_case(1, 1).id(), .to = now.cases[0].id()}});
  const Judgement judgement = gate(now);
  EXPECT_EQ(exit_code(judgement), 0) << conclusion(judgement);
  EXPECT_THAT(judgement.cases, SizeIs(3));
}

TEST_F(HistoryGate, HasNoVerdictOnACaseThatVanished) {
  add_nights(0, 12);
  const Judgement judgement = gate(night(13, [](Result& result) { result.cases.pop_back(); }));
  EXPECT_EQ(exit_code(judgement), 4);
  ASSERT_THAT(judgement.cases, SizeIs(3));
  EXPECT_THAT(judgement.cases[2].sentence(), HasSubstr("absent from the result"));
  // The next nights too, until none of the runs that are the baseline has it: a case of the past.
  const auto without = [](Result& result) { result.cases.pop_back(); };
  add_nights(13, 15, without);
  EXPECT_EQ(exit_code(gate(night(15, without))), 4);
  add_nights(15, 25, without);
  EXPECT_THAT(gate(night(25, without)).cases, SizeIs(2));
}

TEST_F(HistoryGate, TakesTheSpreadOfACalibrationFirst) {
  add_nights(0, 12);
  const Result now = night(13);
  const Calibration calibration = {
      {"fake device", {{now.cases[0].id(), {.between = 0.05, .within = 0.001, .processes = 20}}}}};
  const Judgement judgement = gate(now, {}, calibration);
  EXPECT_EQ(judgement.cases[0].latency->spread_from,
            "the baseline's runs, calibration of 20 processes");
  EXPECT_GT(judgement.cases[0].latency->between_processes,
            2 * gate(now).cases[0].latency->between_processes);
}

TEST_F(HistoryGate, WithOneRunFallsBackOnThePolicysSpread) {
  add_nights(0, 1);
  const Judgement judgement = gate(night(2));
  EXPECT_EQ(judgement.cases[0].latency->baseline_processes, 1u);
  EXPECT_EQ(judgement.cases[0].latency->between_processes, 0.014);
}

}  // namespace
}  // namespace moegauge
