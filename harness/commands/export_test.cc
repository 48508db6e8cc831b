// `moegauge export` of what `moegauge ingest` wrote; the formats themselves are read by their own
// tools (harness/export/readers_test.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/commands/command_line_testing.h"
#include "harness/history/store.h"
#include "reference/base/text_file.h"

namespace moegauge {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class ExportOfServing : public CommandLine {
 protected:
  ExportOfServing() {
    write_text("t.txt",
               "org/m\n\nTTFT (ms)\n\nISL-OSL\tUntuned\tTuned\n512-512\t1176.38\t982.67\n"
               "1024-1024\t884.88\t711.35\n");
    write_text("rate.txt", "Throughput: 2.5 requests/s, 900 total tokens/s, 300 output tokens/s\n");
    write_text("score.txt",
               "|Tasks|Version|Filter|n-shot|Metric| |Value| |Stderr|\n"
               "|-----|------:|------|-----:|------|-|----:|-|-----:|\n"
               "|gsm8k|      3|strict|     5|exact_match|↑|0.9|±|0.0083|\n");
    for (const char* variant : {"Untuned", "Tuned"}) {
      EXPECT_EQ(run({"ingest", path("t.txt"), "--variant", variant, "--out",
                     path(variant + std::string(".json"))}),
                0);
    }
    EXPECT_EQ(run({"ingest", path("t.txt"), path("rate.txt"), path("score.txt"), "--out",
                   path("all.json")}),
              0)
        << err_;
  }
  int code(const std::string& format, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"export", path("all.json"), "--format", format};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
};

// 4 times, 3 rates, a score with its standard error.
TEST_F(ExportOfServing, CsvHoldsEveryNumber) {
  EXPECT_EQ(code("csv"), 0);
  EXPECT_THAT(err_, IsEmpty());
  EXPECT_THAT(out_, HasSubstr("all.json,serve/org/m/input_output=512-512/variant=Tuned,serve,org/m"
                              ",,,,,,,,,,,,ttft_ms.mean,982.67\n"));
  EXPECT_THAT(out_, HasSubstr(",stderr,0.0083\n"));
  EXPECT_EQ(std::count(out_.begin(), out_.end(), '\n'), 1 + 4 + 3 + 2);
  EXPECT_EQ(code("csv-wide"), 0);
  EXPECT_THAT(out_, HasSubstr(",reason,"));
  EXPECT_EQ(std::count(out_.begin(), out_.end(), '\n'), 1 + 4 + 1 + 1);
  const std::string head = out_.substr(0, out_.find('\n'));
  EXPECT_THAT(head, HasSubstr("requests_per_s"));
}

TEST_F(ExportOfServing, GoogleBenchmarkHoldsTimesAndSaysWhatItLeavesOut) {
  for (const char* format : {"google-benchmark", "google-benchmark-median"}) {
    EXPECT_EQ(code(format), 0);
    const auto rows = nlohmann::json::parse(out_)["benchmarks"];
    ASSERT_EQ(rows.size(), 4u);
    EXPECT_EQ(rows[0]["run_name"], "serve/org/m/input_output=512-512/variant=Untuned/ttft_ms.mean");
    EXPECT_EQ(rows[0]["real_time"], 1176.38);
    EXPECT_EQ(rows[0]["time_unit"], "ms");
    EXPECT_EQ(err_, std::string("moegauge: ") + format +
                        " leaves out 5 numbers of serving and accuracy: its rows are times, which "
                        "rates, counts and scores are not\n");
  }
}

TEST_F(ExportOfServing, TheActionGetsTimesAsSmallerAndRatesAndScoresAsBigger) {
  EXPECT_EQ(code("github-action-benchmark"), 0);
  EXPECT_EQ(nlohmann::json::parse(out_).size(), 4u);
  EXPECT_THAT(err_, HasSubstr("leaves out 5 numbers"));
  EXPECT_EQ(code("github-action-benchmark-bigger"), 0);
  const auto entries = nlohmann::json::parse(out_);
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[3]["unit"], "score");
  EXPECT_EQ(entries[3]["value"], 0.9);
  EXPECT_EQ(entries[3]["range"], "± 0.0083");
}

TEST_F(ExportOfServing, MarkdownHasTablesOfBoth) {
  EXPECT_EQ(code("markdown"), 0);
  EXPECT_THAT(out_, HasSubstr("#### Serving\n\n| point | number | value | unit |"));
  EXPECT_THAT(out_, HasSubstr("| ttft\\_ms.mean | 982.67 | ms |"));
  EXPECT_THAT(out_, HasSubstr("#### Accuracy"));
  EXPECT_THAT(out_, HasSubstr("| 0.9 | 0.0083 | - |"));
}

TEST_F(ExportOfServing, TheChartOfServingDrawsGainsOverABaseline) {
  EXPECT_EQ(run({"export", path("Tuned.json"), "--format", "vega", "--chart", "end_to_end",
                 "--baseline", path("Untuned.json")}),
            0)
      << err_;
  const auto spec = nlohmann::json::parse(out_);
  const auto rows = spec["datasets"]["end_to_end"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_DOUBLE_EQ(rows[0]["gain"], 1 - 982.67 / 1176.38);
  EXPECT_EQ(rows[0]["verdict"], "improved");
  // Without one it would be empty, which is said.
  EXPECT_EQ(run({"export", path("Tuned.json"), "--format", "vega", "--chart", "end_to_end"}), 4);
  EXPECT_EQ(err_,
            "moegauge: vega leaves out 2 numbers of serving and accuracy: it draws gains over a "
            "--baseline that has them too\n"
            "moegauge: the results hold nothing that vega can show\n");
  EXPECT_EQ(code("vega", {"--chart", "latency"}), 4);
  EXPECT_THAT(err_, HasSubstr("it draws cases; --chart end_to_end draws them"));
}

TEST_F(ExportOfServing, ABaselineIsForChartsOnlyAndMustBeThere) {
  EXPECT_EQ(code("csv", {"--baseline", path("Untuned.json")}), 2);
  EXPECT_THAT(err_, HasSubstr("it is drawn in charts only"));
  EXPECT_EQ(code("vega", {"--baseline", path("none.json")}), 4);
  EXPECT_THAT(err_, HasSubstr("no such baseline"));
}

TEST_F(ExportOfServing, TheNightlyTrendIsDrawnFromAHistory) {
  if (!history_is_built()) GTEST_SKIP() << "this build has no SQLite";
  for (const char* day : {"1", "2", "3"}) {
    Result night = model_result_;
    night.machine = {{"date", std::string("2026-10-0") + day + "T03:00:00+00:00"}};
    write("night.json", night);
    ASSERT_EQ(run({"history", "add", path("night.json"), "--db", path("h.db")}), 0) << err_;
  }
  const auto draw = [&](const std::string& db) {
    return run({"export", path("night.json"), "--format", "vega", "--chart", "history", "--history",
                path(db)});
  };
  EXPECT_EQ(draw("h.db"), 0) << err_;
  EXPECT_EQ(nlohmann::json::parse(out_)["datasets"]["history"].size(), 9u);  // cases by nights
  EXPECT_EQ(draw("none.db"), 4);
  EXPECT_EQ(code("csv", {"--history", path("h.db")}), 2);
}

TEST_F(ExportOfServing, CasesAloneLeaveNothingOut) {
  for (const char* format :
       {"google-benchmark", "csv", "csv-wide", "github-action-benchmark", "markdown"}) {
    EXPECT_EQ(run({"export", path("r.json"), "--format", format}), 0) << format;
    EXPECT_THAT(err_, IsEmpty()) << format;
  }
  EXPECT_EQ(run({"export", path("r.json"), "--format", "github-action-benchmark-bigger"}), 4);
  EXPECT_THAT(err_, HasSubstr("hold nothing that github-action-benchmark-bigger can show"));
}

}  // namespace
}  // namespace moegauge
