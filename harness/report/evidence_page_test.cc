#include "harness/report/evidence_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/judge/fake_result.h"

namespace moegauge {
namespace {

using testing::HasSubstr;
using testing::Not;

ErrorLimits fake_limits(const CaseRecord&, const CheckResult&) { return {0.001, 0.01}; }

ReportInput input_of(Result result) {
  ReportInput input{.policy = {.name = "test", .confidence = 0.95}, .shipped = fake_limits};
  input.policy.latency = {LatencyRule{.ratio_limit = 1.05, .between_runs = 0.014}};
  input.policy.error = {ErrorRule{.growth_limit = 1.03}};
  input.files.push_back({.name = "now.json", .result = std::move(result)});
  return input;
}

EndToEndRow serve(const std::string& lengths, double ttft) {
  return {.op = "serve",
          .model = "org/m",
          .labels = {{"input_output", lengths}},
          .numbers = {{"ttft_ms.mean", ttft}},
          .source = {.file = "table.txt"}};
}

CaseVerdict verdict_of(const std::string& id, Verdict kind) {
  return {.id = id,
          .verdict = kind,
          .findings = {{kind, "serving", "why of " + id}},
          .number = NumberJudgement{.name = "ttft_ms.mean",
                                    .unit = "ms",
                                    .result = 131106.68,
                                    .baseline = 126817.12,
                                    .relative = true,
                                    .change = 0.0338}};
}

// Default takes 100 us at each of these batch sizes, tuned `tuned`.
Result tuned_and_default(double tuned, const std::vector<std::int64_t>& tokens) {
  Result result = fake_result();
  const CaseRecord like = result.cases[0];
  result.cases.clear();
  result.comparisons.clear();
  for (const std::int64_t m : tokens) {
    for (const char* config : {"default", "tuned"}) {
      CaseRecord record = like;
      record.coordinates.tokens = m;
      record.coordinates.config = config;
      std::get<Measured>(record.outcome).latency.median =
          std::string_view(config) == "tuned" ? tuned : 100;
      result.cases.push_back(record);
    }
  }
  return result;
}

TEST(EvidencePage, HoldsATableOfTunedAgainstDefaultPerBatchSize) {
  const std::string page = evidence_page(input_of(tuned_and_default(80, {1, 16})), {});
  EXPECT_THAT(page, HasSubstr("No verdict without a baseline: 4 of 4 cases measured"));
  EXPECT_THAT(page, HasSubstr("| M | default | tuned | default/tuned |"));
  EXPECT_THAT(page, HasSubstr("| 1 | 100.0 us | 80.00 us | 1.250x |"));
  EXPECT_THAT(page, HasSubstr("| 16 | 100.0 us | 80.00 us | 1.250x |"));
  EXPECT_THAT(page, HasSubstr("## Errors"));
}

TEST(EvidencePage, SaysWhichNumbersOfServingAreSuspect) {
  Result result;
  result.end_to_end = {serve("1-1", 1)};
  Judgement judgement;
  judgement.cases = {verdict_of("serve/a", Verdict::inconclusive)};
  judgement.cases[0].number->suspect = "more work took less";
  EXPECT_THAT(evidence_page(input_of(result), {judgement}), HasSubstr("| inconclusive, suspect |"));
}

TEST(EvidencePage, SaysWhatItDoesNotShow) {
  const std::string page = evidence_page(input_of(tuned_and_default(80, {1})), {});
  for (const char* gap :
       {"No AMD hardware run.", "No serving run.", "No accuracy of a whole model.",
        "No baseline: nothing here is a before and after.",
        "1 tuned and default pair not measured in alternation."})
    EXPECT_THAT(page, HasSubstr(gap));
  Result amd = tuned_and_default(80, {1});
  for (CaseRecord& record : amd.cases) record.device = "AMD_Instinct_MI300X/gfx942/304";
  const std::string on_amd = evidence_page(input_of(amd), {});
  EXPECT_THAT(on_amd, Not(HasSubstr("No AMD hardware run.")));
  EXPECT_THAT(on_amd, HasSubstr("No NVIDIA hardware run."));
}

TEST(EvidencePage, ShowsServingWithoutABaselineAsItWasRead) {
  Result result;
  result.context = {{"measured_on", "not stated"}};
  result.end_to_end = {serve("512-512", 982.67)};
  const std::string page = evidence_page(input_of(result), {});
  EXPECT_THAT(page, HasSubstr("1 serving or accuracy row"));
  EXPECT_THAT(page, HasSubstr("| `serve/org/m/input_output=512-512` |  | ttft\\_ms.mean 982.67 |"));
  EXPECT_THAT(page, HasSubstr("moegauge ingest table.txt --out now.json"));
  EXPECT_THAT(page, HasSubstr("The machine that served or was evaluated is not stated."));
  EXPECT_THAT(page, HasSubstr("No kernel was measured."));
}

TEST(EvidencePage, PutsTheWorstVerdictFirst) {
  ReportInput input = input_of({});
  input.baseline = ReportFile{.name = "then.json"};
  const Judgement judgement{
      .policy = "test",
      .cases = {verdict_of("serve/a", Verdict::improved), verdict_of("serve/b", Verdict::fail)},
      .means = {"means disagree"}};
  const std::string page = evidence_page(input, {judgement});
  EXPECT_THAT(page, HasSubstr("**FAIL: 1 of 2 cases** (policy test)"));
  EXPECT_THAT(page, HasSubstr("| **fail** | `serve/b` | why of serve/b |"));
  EXPECT_THAT(page, Not(HasSubstr("why of serve/a")));
  EXPECT_THAT(page, HasSubstr("1 fail, 1 improved."));
  EXPECT_LT(page.find("| fail | 131106.68 ms | 126817.12 ms | +3.4% |"),
            page.find("| improved | 131106.68 ms"));
  EXPECT_THAT(page, HasSubstr("- means disagree"));
  EXPECT_THAT(page, HasSubstr("moegauge gate now.json --baseline then.json --policy test"));
}

TEST(EvidencePage, StaysSmallWhateverTheInputAndSaysWhatItLeftOut) {
  std::vector<std::int64_t> tokens;
  for (std::int64_t m = 1; m <= 400; ++m) tokens.push_back(m);
  Result result = tuned_and_default(80, tokens);
  const std::string hostile(5000, '|');
  for (std::size_t i = 0; i < result.cases.size(); ++i) {
    CaseRecord& record = result.cases[i];
    record.coordinates.model = "m" + std::to_string(i / 4) + hostile;
    record.repro = "```\n" + hostile;
    if (i % 3 == 0) record.outcome = Unmeasured{Status::crashed, std::to_string(i) + hostile};
  }
  for (int i = 0; i < 2000; ++i)
    result.end_to_end.push_back(serve(std::to_string(i) + "-1" + hostile, i));
  result.context = {{"measured_on", hostile}, {"suite", hostile}, {"suite_file", hostile}};
  ReportInput input = input_of(result);
  input.files.resize(30);
  for (ReportFile& file : input.files) file.name = hostile;
  input.baseline = input.files.front();
  Judgement judgement{.policy = "test"};
  for (int i = 0; i < 3000; ++i)
    judgement.cases.push_back(verdict_of(std::to_string(i) + hostile, Verdict::fail));
  judgement.cases.back().id = "9999";
  judgement.notes.assign(100, hostile);
  const std::string page = evidence_page(input, {judgement});
  EXPECT_LT(page.size(), evidence_page_bytes);
  EXPECT_GT(page.size(), evidence_page_bytes / 2);
  EXPECT_THAT(page, HasSubstr("are left out, so that this page stays small"));
  EXPECT_THAT(page, HasSubstr("<details>"));
}

}  // namespace
}  // namespace moegauge
