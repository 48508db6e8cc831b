// `moegauge report`, from the command line to the exit code; the page itself is tested in a browser
// (harness/report/browser_test.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "harness/commands/command_line_testing.h"
#include "reference/base/text_file.h"

namespace moegauge {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(CommandLine, ReportWritesAPageThatHoldsTheResult) {
  EXPECT_EQ(run({"report", path("r.json"), "--out", path("r.html")}), 0);
  const std::string page = read_text_file(path("r.html"));
  EXPECT_THAT(page, HasSubstr("<!DOCTYPE html>"));
  EXPECT_THAT(page, HasSubstr("No verdict without a baseline: 3 of 3 cases measured"));
  EXPECT_THAT(page, Not(HasSubstr("<!--")));  // every mark of page.html was filled in
}

TEST_F(CommandLine, ReportAgainstABaselineHoldsTheGatesSentence) {
  Result halved = model_result_;
  for (CaseRecord& record : halved.cases) scale_latency(record, 0.5);
  write("halved.json", halved);
  EXPECT_EQ(
      run({"report", path("r.json"), "--baseline", path("halved.json"), "--out", path("r.html")}),
      0);
  EXPECT_THAT(read_text_file(path("r.html")), HasSubstr("FAIL: 3 of 3 cases"));
}

TEST_F(CommandLine, ReportDoesNotLetAResultEndItsScript) {
  Result hostile = model_result_;
  hostile.cases[0].repro = "</script><script>alert(1)</script>";
  write("hostile.json", hostile);
  EXPECT_EQ(run({"report", path("hostile.json"), "--out", path("r.html")}), 0);
  EXPECT_THAT(read_text_file(path("r.html")), Not(HasSubstr("alert(1)</script>")));
}

TEST_F(CommandLine, ReportNeverOverwritesWhatItReads) {
  const std::string before = read_text_file(path("r.json"));
  EXPECT_EQ(run({"report", path("r.json"), "--out", path("r.json")}), 2);
  EXPECT_THAT(err_, HasSubstr("it is a result"));
  EXPECT_EQ(read_text_file(path("r.json")), before);
}

TEST_F(CommandLine, ReportWithoutTheBaselineThatWasNamedExitsWith4) {
  EXPECT_EQ(
      run({"report", path("r.json"), "--baseline", path("none.json"), "--out", path("r.html")}), 4);
  EXPECT_THAT(err_, HasSubstr("no such baseline"));
}

TEST_F(CommandLine, ReportOfNoCaseExitsWith4) {
  EXPECT_EQ(run({"report", path("r.json"), "--filter", "nothing*", "--out", path("r.html")}), 4);
}

TEST_F(CommandLine, ReportRefusesAHistoryByName) {
  EXPECT_EQ(run({"report", path("r.json"), "--history", "h.db", "--out", path("r.html")}), 2);
  EXPECT_THAT(err_, HasSubstr("--history h.db: this version keeps no history database"));
  EXPECT_EQ(run({"report", "--help"}), 0);
  EXPECT_THAT(out_, Not(HasSubstr("--history")));
}

TEST_F(CommandLine, ReportOfAFileThatIsNoResultExitsWith2) {
  std::ofstream(path("no.json")) << "{}";
  EXPECT_EQ(run({"report", path("no.json"), "--out", path("r.html")}), 2);
  EXPECT_THAT(err_, HasSubstr("no.json: no result"));
}

}  // namespace
}  // namespace moegauge
