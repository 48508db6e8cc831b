#include "harness/commands/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "harness/measure/summary.h"

namespace moegauge {
namespace {

using ::testing::HasSubstr;

CaseRecord measured(const std::string& config, std::int64_t tokens, double us) {
  CaseRecord record;
  record.coordinates.model = "qwen3-30b-a3b";
  record.coordinates.scheme = "fp8_block";
  record.coordinates.tp = 4;
  record.coordinates.config = config;
  record.coordinates.tokens = tokens;
  record.backend = "cpu";
  Measured m;
  m.latency = summarize(std::vector<double>(12, us));
  m.check.error.implementation.relative_l2 = 1.5e-4;
  m.check.error.quantization.relative_l2 = 0.06;
  m.check.error.total.relative_l2 = 0.0601;
  m.roofline.fraction = 50 / us;
  record.outcome = std::move(m);
  return record;
}

CaseRecord failed(std::int64_t tokens, Status status, const std::string& reason) {
  CaseRecord record = measured("tuned", tokens, 1);
  record.outcome = Unmeasured{status, reason, std::nullopt};
  return record;
}

Result with_comparisons(std::vector<CaseRecord> cases) {
  Result result;
  result.cases = std::move(cases);
  result.comparisons = compare_rivals(result.cases);
  return result;
}

TEST(Table, ShowsARowPerBatchSize) {
  const std::string table = render_table(with_comparisons(
      {measured("default", 16, 100), measured("tuned", 16, 80), measured("default", 4, 62.5)}));
  EXPECT_THAT(table, HasSubstr("qwen3-30b-a3b  tp4.ep1  fp8_block  cpu"));
  EXPECT_THAT(table, HasSubstr("      16       100.0       80.00  1.250 [1.250, 1.250]     0.00015 "
                               "     0.06      0.06"));
  // 50 us of 80: the fastest of the row.
  EXPECT_THAT(table, HasSubstr("62%"));
  EXPECT_LT(table.find("       4 "), table.find("      16 ")) << "in the order of tokens";
}

// Their ratio would be read as what tuning brought.
TEST(Table, ShowsNoRatioOfAConfigToItself) {
  CaseRecord base = measured("default", 16, 100), tuned = measured("tuned", 16, 80);
  base.config.hash = tuned.config.hash = "0123456789abcdef";
  EXPECT_THAT(render_table(with_comparisons({base, tuned})),
              HasSubstr("      16       100.0       80.00  same config "));
  tuned.config.hash = "fedcba9876543210";
  EXPECT_THAT(render_table(with_comparisons({base, tuned})), HasSubstr("1.250 [1.250, 1.250]"));
}

TEST(Table, ListsWhatIsNotOkOncePerReason) {
  const std::string table = render_table(
      with_comparisons({measured("default", 1, 100), failed(1, Status::skipped, "no tuned file X"),
                        failed(2, Status::skipped, "no tuned file X"),
                        failed(4, Status::crashed, "killed by SIGSEGV")}));
  EXPECT_THAT(table, HasSubstr("skipped, 2 cases: no tuned file X\n"));
  EXPECT_THAT(table, HasSubstr("crashed, 1 case: killed by SIGSEGV\n"));
}

TEST(Table, MarksAndExplainsWhatIsDoubtful) {
  CaseRecord record = measured("default", 1, 100);
  auto& m = std::get<Measured>(record.outcome);
  m.unstable = m.suspect = m.extrapolated = true;
  const std::string table = render_table(with_comparisons({record}));
  EXPECT_THAT(table, HasSubstr("100.0~?x"));
  EXPECT_THAT(table, HasSubstr("\n~ "));
  EXPECT_THAT(table, HasSubstr("\n? "));
  EXPECT_THAT(table, HasSubstr("\nx "));
}

TEST(Table, OfNothingIsEmpty) { EXPECT_EQ(render_table({}), ""); }

TEST(Table, FitsAHundredColumns) {
  std::istringstream lines(render_table(with_comparisons(
      {measured("default", 1048576, 123456), measured("tuned", 1048576, 100000),
       failed(2, Status::inaccurate, std::string(60, 'x') + " " + std::string(60, 'y') + " z")})));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("    ")) continue;  // case ids are never cut
    EXPECT_LE(line.size(), 100u) << line;
  }
}

}  // namespace
}  // namespace moegauge
