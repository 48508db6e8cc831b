// `moegauge report`, from the command line to the exit code; the page itself is tested in a browser
// (harness/report/browser_test.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "harness/commands/command_line_testing.h"
#include "harness/history/store.h"
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

class ReportHistory : public CommandLine {
 protected:
  void SetUp() override {
    if (!history_is_built()) GTEST_SKIP() << "this build has no SQLite";
    std::vector<std::string> words = {"history", "add"};
    for (int n = 1; n <= 12; ++n) {
      words.push_back(path("night" + std::to_string(n) + ".json"));
      write("night" + std::to_string(n) + ".json", night(n, 1));
    }
    words.insert(words.end(), {"--db", path("h.db")});
    ASSERT_EQ(run(words), 0) << err_;
  }
  Result night(int n, double slower) const {
    Result result = model_result_;
    const std::string date = "2026-10-" + std::string(n < 10 ? "0" : "") + std::to_string(n);
    result.machine = {{"date", date + "T03:00:00+00:00"}};
    result.context = {{"suite", "quick"}};
    for (CaseRecord& record : result.cases) scale_latency(record, slower * (1 + 0.002 * (n % 3)));
    return result;
  }
};

TEST_F(ReportHistory, MakesTheVerdictAndTheTrendOfAReport) {
  write("slow.json", night(13, 1.2));
  EXPECT_EQ(run({"report", path("slow.json"), "--history", path("h.db"), "--out", path("r.html")}),
            0)
      << err_;
  const std::string page = read_text_file(path("r.html"));
  EXPECT_THAT(page, HasSubstr("FAIL: 3 of 3 cases"));
  EXPECT_THAT(page, HasSubstr(R"("against":"the last runs of the history")"));
  EXPECT_THAT(page, HasSubstr(R"("history":{"rows":39,)"));  // 3 cases, 12 nights and the result
}

TEST_F(ReportHistory, LeavesTheVerdictToABaselineThatIsNamed) {
  write("slow.json", night(13, 1.2));
  EXPECT_EQ(run({"report", path("slow.json"), "--baseline", path("slow.json"), "--history",
                 path("h.db"), "--out", path("r.html")}),
            0)
      << err_;
  EXPECT_THAT(read_text_file(path("r.html")), HasSubstr(R"("against":"the baseline")"));
  EXPECT_THAT(read_text_file(path("r.html")), HasSubstr(R"("sentence":"PASS: 3 cases")"));
}

TEST_F(ReportHistory, IsOneLineWhereItIsMissingOrDamaged) {
  const auto code = [&](const std::string& db) {
    return run({"report", path("r.json"), "--history", db, "--out", path("r.html")});
  };
  EXPECT_EQ(code(path("none.db")), 4);
  EXPECT_EQ(err_, "moegauge: " + path("none.db") +
                      ": no such history; make one with moegauge history add\n");
  EXPECT_EQ(code(write_text("no.db", "this is no history")), 2);
  EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 1) << err_;
  EXPECT_EQ(run({"report", path("r.json"), "--history", path("h.db"), "--out", path("h.db")}), 2);
  EXPECT_THAT(err_, HasSubstr("it is the history"));
  EXPECT_FALSE(std::filesystem::exists(path("r.html")));
}

TEST_F(CommandLine, ReportOfAFileThatIsNoResultExitsWith2) {
  std::ofstream(path("no.json")) << "{}";
  EXPECT_EQ(run({"report", path("no.json"), "--out", path("r.html")}), 2);
  EXPECT_THAT(err_, HasSubstr("no.json: no result"));
}

}  // namespace
}  // namespace moegauge
