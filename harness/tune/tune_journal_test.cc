#include "harness/tune/tune_journal.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "harness/result/record_testing.h"
#include "harness/testing/command.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

class TuneJournalTest : public ::testing::Test {
 protected:
  TuneJournal open(bool resume, const std::string& header = "this run") const {
    return TuneJournal::open(file(), header, resume);
  }
  std::filesystem::path file() const { return folder_.path() / "t.journal"; }
  TestFolder folder_;
};

TEST_F(TuneJournalTest, TellsTheSameCaseOfTwoRequestsApart) {
  CaseRecord record = test_measured();
  {
    TuneJournal journal = open(false);
    record.seed = 1;
    journal.append("M=16 first 0", record);
    record.seed = 2;
    journal.append("M=16 final", record);
    journal.append_seconds("M=16 first 0", 1.5);
  }
  const TuneJournal resumed = open(true);
  EXPECT_EQ(resumed.size(), 2u);
  ASSERT_NE(resumed.find("M=16 first 0", record.id()), nullptr);
  EXPECT_EQ(resumed.find("M=16 first 0", record.id())->seed, 1u);
  EXPECT_EQ(resumed.find("M=16 final", record.id())->seed, 2u);
  EXPECT_EQ(resumed.seconds("M=16 first 0"), std::optional(1.5));
  EXPECT_EQ(resumed.seconds("M=16 final"), std::nullopt) << "it was not measured to its end";
}

TEST_F(TuneJournalTest, ALineThatWasCutIsNotThere) {
  open(false).append_seconds("a", 1);
  std::ofstream(file(), std::ios::app) << R"({"tag":"b","sec)";
  EXPECT_EQ(open(true).seconds("b"), std::nullopt);
  EXPECT_EQ(open(true).seconds("a"), std::optional(1.0));
}

TEST_F(TuneJournalTest, OfAnotherRunIsRefused) {
  open(false);
  EXPECT_THROW(open(true, "that run"), InputError);
}

}  // namespace
}  // namespace moegauge
