#include "harness/tune/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "harness/tune/tune_testing.h"

namespace moegauge {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

Config block(std::int64_t size) { return {.values = {{"BLOCK_SIZE_M", size}}}; }
std::string named(std::int64_t size) { return inline_config(block(size)); }

// A laboratory where times are what `us` says, and every request takes a second.
class SearchTest : public ::testing::Test {
 protected:
  KeyFindings search(std::int64_t candidates) {
    plan_.tokens = 16;
    plan_.standard = block(0);
    for (std::int64_t i = 1; i <= candidates; ++i) plan_.candidates.push_back(block(i));
    return search_key(plan_, settings_,
                      {.measure = [this](const TuneRequest& request) { return measure(request); },
                       .seconds = [this] { return seconds_; }});
  }

  std::vector<CaseRecord> measure(const TuneRequest& request) {
    seconds_ += 1;
    requests_.push_back(request);
    std::vector<CaseRecord> records;
    const auto rows = static_cast<std::size_t>(
        request.settings.stopping ? request.settings.stopping->min_rows : 18);
    for (const std::string& config : request.configs) {
      records.push_back(config == "default" ? timed_record(config, 100, rows)
                                            : record_of(config, rows));
    }
    return records;
  }

  KeyPlan plan_;
  SearchSettings settings_ = {.seconds_per_key = 1000};
  double seconds_ = 0;
  std::vector<TuneRequest> requests_;
  std::function<CaseRecord(const std::string&, std::size_t)> record_of =
      [](const std::string& config, std::size_t rows) {
        // The 13th is best, and the further from it the worse.
        const ConfigRequest request = parse_config_request(config, "test");
        const auto size = static_cast<double>(request.config.values.at("BLOCK_SIZE_M"));
        return timed_record(config, 90 + std::abs(size - 13), rows);
      };
};

std::vector<std::string> configs(const std::vector<CaseRecord>& records) {
  std::vector<std::string> all;
  for (const CaseRecord& record : records) all.push_back(record.coordinates.config);
  return all;
}

TEST_F(SearchTest, HalvesToTheBestTwoAndMeasuresThemOnFreshInputs) {
  const KeyFindings findings = search(20);
  EXPECT_TRUE(findings.complete);
  EXPECT_EQ(findings.tried, 20u);
  ASSERT_THAT(findings.final, SizeIs(3));
  EXPECT_EQ(findings.final[0].coordinates.config, "default");
  EXPECT_EQ(findings.final[1].coordinates.config, named(13));
  // 20 in batches of 2 and 8, a third of 20 is 7, of these 3, then the final.
  std::vector<std::size_t> members;
  for (const TuneRequest& request : requests_) members.push_back(request.configs.size() - 1);
  EXPECT_THAT(members, ElementsAre(2, 8, 8, 2, 7, 3, 2));
  EXPECT_EQ(requests_[0].settings.draw, 0u);
  EXPECT_EQ(requests_.back().settings.draw, 1u);
  EXPECT_FALSE(requests_.back().settings.stopping) << "by the rule of every run";
}

TEST_F(SearchTest, EveryRungTakesTwiceAsManyRounds) {
  search(20);
  EXPECT_EQ(requests_[0].settings.stopping->max_rounds, 3);
  EXPECT_EQ(requests_[4].settings.stopping->max_rounds, 6);
  EXPECT_EQ(requests_[5].settings.stopping->max_rounds, 12);
}

TEST_F(SearchTest, EveryRequestHasTheDefaultInIt) {
  search(20);
  for (const TuneRequest& request : requests_) EXPECT_EQ(request.configs.front(), "default");
}

TEST_F(SearchTest, ACandidateWithoutALatencyIsDroppedAndNoted) {
  record_of = [](const std::string& config, std::size_t rows) {
    if (config == named(1)) return failed_record(config, Status::inaccurate, "zeros");
    return timed_record(config, config == named(2) ? 80 : 110, rows);
  };
  const KeyFindings findings = search(3);
  EXPECT_THAT(configs(findings.dropped), ElementsAre(named(1)));
  EXPECT_THAT(configs(findings.final), ElementsAre("default", named(2)));
}

TEST_F(SearchTest, WhereNothingLooksFasterThereIsNoFinal) {
  record_of = [](const std::string& config, std::size_t rows) {
    return timed_record(config, 104, rows);
  };
  const KeyFindings findings = search(3);
  EXPECT_TRUE(findings.complete);
  EXPECT_TRUE(findings.final.empty());
}

TEST_F(SearchTest, AnIncumbentIsAlwaysInTheFinal) {
  plan_.incumbent = block(99);
  record_of = [](const std::string& config, std::size_t rows) {
    return timed_record(config, 104, rows);
  };
  EXPECT_THAT(configs(search(3).final), ElementsAre("default", named(99)));
}

// A second a request: with 3 members a third of one each, so that 4 more fit into half of 3
// seconds; then, at a fifth each, 2 more into what is left of it.
TEST_F(SearchTest, TriesAsManyLikelyOnesAsThereIsTimeFor) {
  settings_.seconds_per_key = 3;
  const KeyFindings findings = search(40);
  EXPECT_TRUE(findings.complete);
  EXPECT_EQ(findings.tried, 8u);
  EXPECT_EQ(findings.untried, 32u);
  EXPECT_EQ(requests_.back().settings.draw, 1u) << "finalists are measured all the same";
}

TEST_F(SearchTest, ADefaultWithoutALatencyEndsTheSearch) {
  plan_.tokens = 16;
  plan_.candidates = {block(1), block(2)};
  const KeyFindings findings =
      search_key(plan_, settings_,
                 {.measure =
                      [](const TuneRequest& request) {
                        std::vector<CaseRecord> records;
                        for (const std::string& config : request.configs) {
                          records.push_back(failed_record(config, Status::error, "no"));
                        }
                        return records;
                      },
                  .seconds = [] { return 0.0; }});
  EXPECT_TRUE(findings.complete);
  ASSERT_THAT(findings.final, SizeIs(1));
  EXPECT_EQ(findings.final[0].measured(), nullptr);
}

TEST_F(SearchTest, ARunThatEndsLeavesTheKeyIncomplete) {
  record_of = [](const std::string& config, std::size_t) {
    return failed_record(config, Status::skipped, "budget");
  };
  EXPECT_FALSE(search(3).complete);
}

TEST_F(SearchTest, MakesNoMoreRecordsThanItSaid) {
  plan_.incumbent = block(99);
  search(20);
  std::size_t records = 0;
  for (const TuneRequest& request : requests_) records += request.configs.size();
  EXPECT_LE(records, records_at_most(plan_, settings_));
}

}  // namespace
}  // namespace moegauge
