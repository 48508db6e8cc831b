// `moegauge evidence`, from the command line to the exit code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

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

// Words of a line as a shell splits it, of what the page writes: single quotes only.
std::vector<std::string> shell_words(const std::string& line) {
  std::vector<std::string> words(1);
  bool within = false;
  for (const char c : line) {
    if (c == '\'') {
      within = !within;
    } else if (c == ' ' && !within) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

TEST_F(CommandLine, EvidencesCommandsMakeTheSameRowsAgain) {
  const std::string tables = "harness/endtoend/testdata/tuned_by_length.txt";
  const std::string scores =
      write_text("scores.txt",
                 "|Tasks|Version|Filter|n-shot|Metric|   |Value|   |Stderr|\n"
                 "|-----|------:|------|-----:|------|---|----:|---|-----:|\n"
                 "|gsm8k|      3|strict|     5|exact |   |  0.9|   |   N/A|\n");
  ASSERT_EQ(run({"ingest", tables, "--variant", "untuned", "--gpus", "8", "--label",
                 "concurrency=4", "--out", path("then.json")}),
            0)
      << err_;
  // The order of the files tells which of two runs is 1 and which is 2.
  ASSERT_EQ(run({"ingest", scores, tables, scores, "--variant", "2", "--model", "org/other name",
                 "--questions", "1319", "--machine", "8 cards of mine", "--out", path("now.json")}),
            0)
      << err_;
  ASSERT_EQ(run({"evidence", path("now.json"), "--baseline", path("then.json")}), 0);
  std::istringstream page(out_);
  std::vector<std::string> repeated;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("moegauge ingest ")) continue;
    std::vector<std::string> words = shell_words(line);
    ASSERT_EQ(words[words.size() - 2], "--out");
    repeated.push_back(words.back());
    words.back() = path("again-" + words.back());
    words.erase(words.begin());
    EXPECT_EQ(run(words), 0) << line << "\n" << err_;
  }
  EXPECT_THAT(repeated, testing::ElementsAre("now.json", "then.json"));
  for (const std::string& name : repeated) {
    const Result first = load_result(path(name)).result;
    const Result again = load_result(path("again-" + name)).result;
    ASSERT_EQ(again.end_to_end.size(), first.end_to_end.size()) << name;
    for (std::size_t i = 0; i < first.end_to_end.size(); ++i)
      EXPECT_EQ(to_json(again.end_to_end[i]).dump(), to_json(first.end_to_end[i]).dump());
    EXPECT_EQ(again.context, first.context) << name;
  }
}

TEST_F(CommandLine, EvidenceOfNothingOrWithoutItsBaselineExitsWith4) {
  EXPECT_EQ(run({"evidence", path("r.json"), "--filter", "nothing*"}), 4);
  EXPECT_EQ(run({"evidence", path("r.json"), "--baseline", path("none.json")}), 4);
  EXPECT_EQ(run({"evidence", path("none.json")}), 2);
  EXPECT_EQ(run({"evidence", path("r.json"), "--out", path("r.json")}), 2);
}

}  // namespace
}  // namespace moegauge
