// Every sentence of a verdict says what a person must do next. Each place that makes a finding has
// a situation here; a place that is added without one fails the count.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <iterator>
#include <regex>

#include "harness/judge/findings.h"
#include "harness/judge/judge_testing.h"
#include "harness/judge/known_issues.h"
#include "reference/base/text_file.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

struct Situation {
  std::string name;
  Verdict verdict;
  std::vector<Finding> findings;
};

std::vector<Finding> all_of(const CaseVerdict& verdict) { return verdict.findings; }

Unmeasured unmeasured(Status status, const std::string& reason) {
  return {.status = status, .reason = reason};
}

CaseVerdict outcome(Status status, const std::string& reason) {
  return after([&](CaseRecord& r) { r.outcome = unmeasured(status, reason); });
}

CaseVerdict against(const std::function<void(CaseRecord&)>& change) {
  Result baseline = fake_result();
  change(baseline.cases[0]);
  return judged(fake_result(), baseline).cases[0];
}

ErrorMetrics& implementation(Measured& m) { return m.check.error.implementation; }

CaseVerdict by_processes(std::vector<double> now, std::vector<double> then, bool pairs = false) {
  const CaseRecord record = fake_case(1, 100);
  CaseEvidence one{.known_from = ""};
  for (const double value : now) one.now.push_back(std::log(value));
  for (const double value : then) one.baseline.push_back(std::log(value));
  for (std::size_t i = 0; pairs && i < one.now.size(); ++i)
    one.pairs.push_back(one.now[i] - one.baseline[i]);
  const Evidence evidence = {{record.id(), one}};
  return judge(fake_result(), fake_result(), policy(), limits, "*", evidence).cases[0];
}

std::vector<double> around(double centre, std::size_t count, double spread = 0.002) {
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(centre * (1 + spread * (static_cast<double>(i % 5) - 2)));
  return values;
}

CaseVerdict with_known_issue(const std::string& today) {
  Policy p = policy();
  p.known_issues = {{.match = "*", .reason = "driver", .expires = "2026-12-31"}};
  Result slow = fake_result();
  scale_latency(slow.cases[0], 1.5);
  Judgement judgement = judged(slow, fake_result(), p);
  apply_known_issues(judgement, p, today);
  return judgement.cases[0];
}

CaseVerdict control_that_is(double factor) {
  Policy p = policy();
  p.controls = true;
  return after([&](CaseRecord& r) { scale_latency(r, factor); }, p);
}

std::vector<Situation> situations() {
  const auto scaled = [](double factor) {
    return all_of(after([&](CaseRecord& r) { scale_latency(r, factor); }));
  };
  const auto measured = [](const std::function<void(Measured&)>& change) {
    return all_of(after_measured(change));
  };
  std::vector<Situation> list = {
      {"slower", Verdict::fail, scaled(1.5)},
      {"faster", Verdict::improved, scaled(0.5)},
      {"perhaps slower", Verdict::inconclusive, scaled(1.05)},
      {"as before", Verdict::pass, scaled(1.001)},
      {"the same samples", Verdict::pass, scaled(1)},
      {"suspect", Verdict::inconclusive, measured([](Measured& m) {
         m.suspect = true;
         m.suspect_reason = "under the floor";
       })},
      {"few rounds", Verdict::inconclusive,
       measured([](Measured& m) { m.latency.samples.resize(4); })},
      {"inexact", Verdict::fail,
       measured([](Measured& m) { implementation(m).relative_l2 = 0.02; })},
      {"a bad token", Verdict::fail,
       measured([](Measured& m) { implementation(m).worst_token = 0.5; })},
      {"a growing error", Verdict::fail,
       measured([](Measured& m) { implementation(m).relative_l2 = 0.0012; })},
      {"not finite", Verdict::fail,
       measured([](Measured& m) { implementation(m).non_finite = 3; })},
      {"nothing compared", Verdict::no_verdict,
       measured([](Measured& m) { m.check.checked.rows = 0; })},
      {"another scheme", Verdict::no_verdict,
       measured([](Measured& m) { m.check.executed_scheme = "fp16"; })},
      {"another layer", Verdict::no_verdict,
       measured([](Measured& m) { m.check.layer->hidden_size = 512; })},
      {"another device", Verdict::no_verdict,
       all_of(after([](CaseRecord& r) { r.device = "other"; }))},
      {"another seed", Verdict::no_verdict, all_of(after([](CaseRecord& r) { r.seed = 8; }))},
      {"a new case", Verdict::no_verdict,
       all_of(after([](CaseRecord& r) { r.coordinates.model = "new"; }))},
      {"a crash", Verdict::fail, all_of(outcome(Status::crashed, "signal 11"))},
      {"a broken machine", Verdict::no_verdict,
       all_of(outcome(Status::infrastructure, "no memory"))},
      {"refused now", Verdict::fail, all_of(outcome(Status::unsupported, "no such tile"))},
      {"not ok before", Verdict::no_verdict, all_of(against([](CaseRecord& r) {
         r.outcome = unmeasured(Status::crashed, "signal 11");
       }))},
      {"a known issue", Verdict::known_issue, all_of(with_known_issue("2026-12-01"))},
      {"an expired issue", Verdict::fail, all_of(with_known_issue("2027-01-01"))},
      {"a faster control", Verdict::fail, all_of(control_that_is(0.5))},
      {"processes: slower", Verdict::fail, all_of(by_processes(around(120, 8), around(100, 8)))},
      {"processes: faster", Verdict::improved, all_of(by_processes(around(80, 8), around(100, 8)))},
      {"processes: perhaps", Verdict::inconclusive,
       all_of(by_processes({110, 100}, around(100, 8, 0.02)))},
      {"processes: too few to plan", Verdict::inconclusive,
       all_of(by_processes({112, 100}, {100, 95}))},
      {"processes: as before", Verdict::pass, all_of(by_processes(around(100, 8), around(100, 8)))},
      {"pairs: slower", Verdict::fail,
       all_of(by_processes(around(110, 14), around(100, 14, 0.001), true))},
      {"pairs: faster", Verdict::improved,
       all_of(by_processes(around(90, 14), around(100, 14, 0.001), true))},
      {"pairs: perhaps", Verdict::inconclusive,
       all_of(by_processes({110, 96, 105}, {100, 100, 100}, true))},
      {"pairs: as before", Verdict::pass,
       all_of(by_processes(around(100, 14), around(100, 14, 0.001), true))}};
  Result absent = fake_result(), both_out = fake_result();
  absent.cases.pop_back();
  list.push_back(
      {"vanished", Verdict::no_verdict, judged(absent, fake_result()).cases[2].findings});
  both_out.cases[0].outcome = unmeasured(Status::unsupported, "no such tile");
  list.push_back(
      {"never could", Verdict::not_judged, judged(both_out, both_out).cases[0].findings});
  Result elsewhere = fake_result();
  elsewhere.cases[0].outcome =
      Unmeasured{.status = Status::unsupported, .reason = "no device", .absent_backends = {"cpu"}};
  list.push_back(
      {"no device here", Verdict::no_verdict, judged(elsewhere, fake_result()).cases[0].findings});
  elsewhere.cases[0].outcome = unmeasured(Status::unsupported, "no device");
  elsewhere.cases[0].device = "other";
  list.push_back({"of another device", Verdict::no_verdict,
                  judged(elsewhere, fake_result()).cases[0].findings});
  Result idle = fake_result();
  idle.cases[0].coordinates.tokens = 0;
  list.push_back({"no tokens", Verdict::pass, judged(idle, idle).cases[0].findings});
  const ShippedLimits unknown = [](const CaseRecord&, const CheckResult&) {
    return Expected<ErrorLimits, std::string>(
        Unexpected{std::string("m: no such model; add its file")});
  };
  list.push_back({"unknown limits", Verdict::no_verdict,
                  judge(fake_result(), fake_result(), policy(), unknown).cases[0].findings});
  Result total = fake_result();
  std::get<Measured>(total.cases[0].outcome).check.error.quantization.relative_l2 = 0.05;
  std::get<Measured>(total.cases[0].outcome).check.error.total.relative_l2 = 0.09;
  const ShippedLimits with_total = [](const CaseRecord&, const CheckResult&) {
    return Expected<ErrorLimits, std::string>(ErrorLimits{.relative_l2 = 0.003,
                                                          .worst_token = 0.01,
                                                          .total_factor = 1.03,
                                                          .total_applies_above = 0.01});
  };
  list.push_back({"more than the format costs", Verdict::fail,
                  judge(total, total, policy(), with_total).cases[0].findings});
  return list;
}

TEST(VerdictSentences, SayWhatAPersonMustDoNext) {
  for (const Situation& situation : situations()) {
    ASSERT_FALSE(situation.findings.empty()) << situation.name;
    EXPECT_EQ(situation.findings.front().verdict, situation.verdict)
        << situation.name << ": " << situation.findings.front().sentence();
    for (const Finding& finding : situation.findings) {
      EXPECT_TRUE(says_what_to_do(finding)) << situation.name << ": " << finding.sentence();
      EXPECT_EQ(finding.sentence().find('\n'), std::string::npos) << situation.name;
    }
  }
}

TEST(VerdictSentences, AreEachInASituation) {
  std::size_t places = 0;
  const std::regex maker(R"([({]Verdict::\w+,)");
  for (const auto& entry : fs::directory_iterator("harness/judge")) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".cc") || name.find("_test") != std::string::npos) continue;
    if (name.starts_with("report_")) continue;
    const std::string text = read_text_file(entry.path());
    places += static_cast<std::size_t>(
        std::distance(std::sregex_iterator(text.begin(), text.end(), maker), {}));
  }
  // A place that is new needs a situation above; then count it here.
  EXPECT_EQ(places, 32u);
}

}  // namespace
}  // namespace moegauge
