// `moegauge ingest`, from the command line to the exit code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/commands/command_line_testing.h"
#include "reference/base/text_file.h"

namespace moegauge {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* table =
    "org/m\n\nTTFT (ms)\n\nISL-OSL\tUntuned\tTuned\n512-512\t1176.38\t982.67\n"
    "1024-1024\t884.88\t711.35\n";

TEST_F(CommandLine, IngestWritesAResultThatIsReadBack) {
  write_text("t.txt", table);
  EXPECT_EQ(run({"ingest", path("t.txt"), "--variant", "Tuned", "--machine", "2 cards", "--out",
                 path("t.json")}),
            0);
  EXPECT_THAT(out_, HasSubstr("serve/org/m/input_output=512-512"));
  EXPECT_THAT(out_, HasSubstr("ttft_ms.mean 982.67"));
  EXPECT_THAT(err_, HasSubstr("t.json: 2 rows"));
  const Result result = load_result(path("t.json")).result;
  ASSERT_EQ(result.end_to_end.size(), 2u);
  EXPECT_EQ(result.end_to_end[1].number("ttft_ms.mean"), 711.35);
  EXPECT_THAT(result.context, testing::Contains(testing::Pair("measured_on", "2 cards")));
  // The machine that read the table measured nothing.
  EXPECT_EQ(result.machine["host_name"], "");
}

TEST_F(CommandLine, IngestOfWhatIsNoResultIsOneLineAndExitsWith2) {
  write_text("t.txt", "It was much faster.\n");
  EXPECT_EQ(run({"ingest", path("t.txt"), "--out", path("t.json")}), 2);
  EXPECT_EQ(err_, "moegauge: " + path("t.txt") +
                      ":1: nothing in it is a serving or accuracy result; a serving block, "
                      "Throughput: lines, progress lines, or a table is expected\n");
  EXPECT_FALSE(std::filesystem::exists(path("t.json")));
  EXPECT_EQ(run({"ingest", path("none.txt"), "--out", path("t.json")}), 2);
  EXPECT_EQ(run({"ingest", path("t.txt"), "--out", path("t.txt")}), 2);
  EXPECT_EQ(run({"ingest", path("t.txt")}), 2);
}

TEST_F(CommandLine, IngestRefusesLabelsWithoutAValue) {
  write_text("t.txt", table);
  for (const char* label : {"concurrency", "=4", "concurrency=", "a/b=1"}) {
    EXPECT_EQ(run({"ingest", path("t.txt"), "--label", label, "--out", path("t.json")}), 2);
    EXPECT_THAT(err_, HasSubstr("--label " + std::string(label))) << label;
  }
  EXPECT_EQ(run({"ingest", path("t.txt"), "--gpus", "0", "--out", path("t.json")}), 2);
}

}  // namespace
}  // namespace moegauge
