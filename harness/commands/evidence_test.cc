// `moegauge evidence`, from the command line to the exit code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/commands/command_line_testing.h"
#include "reference/base/text_file.h"

namespace moegauge {
namespace {

using testing::HasSubstr;

TEST_F(CommandLine, EvidenceJoinsKernelsServingAndAccuracyOnOnePage) {
  const std::string fixtures = "harness/endtoend/testdata/";
  const auto ingest = [&](const std::string& fixture, const char* variant, const char* out) {
    ASSERT_EQ(run({"ingest", fixtures + fixture, "--variant", variant, "--out", path(out)}), 0);
  };
  ingest("tuned_by_length.txt", "untuned", "then.json");
  ingest("tuned_by_length.txt", "tuned", "now.json");
  EXPECT_EQ(
      run({"evidence", path("now.json"), "--baseline", path("then.json"), "--out", path("e.md")}),
      0);
  const std::string page = read_text_file(path("e.md"));
  EXPECT_THAT(page, HasSubstr("**FAIL: 1 of 36 cases** (policy default)"));
  EXPECT_THAT(page, HasSubstr("| fail | 131106.68 ms | 126817.12 ms | +3.4% |"));
  EXPECT_THAT(page, HasSubstr("geometric mean ratio 0.858"));
  EXPECT_EQ(run({"evidence", path("r.json"), path("now.json")}), 0);
  EXPECT_THAT(out_, HasSubstr("## Latency per batch size"));
  EXPECT_THAT(out_, HasSubstr("## Serving"));
}

TEST_F(CommandLine, EvidenceOfNothingOrWithoutItsBaselineExitsWith4) {
  EXPECT_EQ(run({"evidence", path("r.json"), "--filter", "nothing*"}), 4);
  EXPECT_EQ(run({"evidence", path("r.json"), "--baseline", path("none.json")}), 4);
  EXPECT_EQ(run({"evidence", path("none.json")}), 2);
  EXPECT_EQ(run({"evidence", path("r.json"), "--out", path("r.json")}), 2);
}

}  // namespace
}  // namespace moegauge
