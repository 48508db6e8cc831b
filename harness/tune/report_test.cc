#include "harness/tune/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/tune/tune_testing.h"

namespace moegauge {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(PullRequestTable, HasARowForEveryEntryThatWasReadBack) {
  TuneOutcome outcome;
  outcome.table.entries[16] = {.values = {{"num_stages", 6}}};
  ReadBack pair{.standard = timed_record("default", 100), .tuned = timed_record("file:t", 80)};
  pair.standard.config.values = {{"BLOCK_SIZE_M", 32}, {"num_stages", 4}};
  pair.tuned.config.values = {{"BLOCK_SIZE_M", 32}, {"num_stages", 6}};
  outcome.read_back[16] = pair;
  outcome.read_back[24] = pair;  // between keys, and no key was added
  const std::string table = pull_request_table(outcome);
  EXPECT_THAT(table, HasSubstr("| 16 | 100.0 | 80.00 | -20.0% | [-20.0%, -20.0%] | "));
  EXPECT_THAT(table, HasSubstr("| `num_stages=4` | `num_stages=6` |\n"));
  EXPECT_THAT(table, Not(HasSubstr("| 24 |")));
}

TEST(PullRequestTable, IsEmptyWithoutRows) { EXPECT_EQ(pull_request_table({}), ""); }

TEST(DecisionList, ListsTheKeysOfEachVerdict) {
  TuneOutcome outcome;
  outcome.decisions = {{.tokens = 1, .verdict = KeyVerdict::added, .reason = "a candidate wins"},
                       {.tokens = 2, .verdict = KeyVerdict::kept, .reason = "nothing wins"},
                       {.tokens = 4, .verdict = KeyVerdict::added, .reason = "a candidate wins"}};
  const std::string list = decision_list(outcome);
  EXPECT_THAT(list, HasSubstr("M=1  added  a candidate wins\n"));
  EXPECT_THAT(list, HasSubstr("\nadded: 1, 4\nkept: 2\n"));
}

TEST(DroppedList, CountsAndNamesEachOnce) {
  TuneOutcome outcome;
  for (const std::int64_t tokens : {1, 2}) {
    outcome.dropped.push_back(
        failed_record(R"({"BLOCK_SIZE_M":8,"num_stages":2})", Status::crashed, "SIGSEGV"));
    outcome.dropped.back().coordinates.tokens = tokens;
  }
  EXPECT_EQ(dropped_list(outcome), "2 crashed:\n  BLOCK_SIZE_M=8 num_stages=2 at M=1,2: SIGSEGV\n");
  EXPECT_EQ(dropped_list({}), "");
}

}  // namespace
}  // namespace moegauge
