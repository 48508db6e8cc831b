#include "harness/tune/decide.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/tune/tune_testing.h"

namespace moegauge {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Config block(std::int64_t size) { return {.values = {{"BLOCK_SIZE_M", size}}}; }
std::string named(std::int64_t size) { return inline_config(block(size)); }

// The default is 16; 32, 64 are candidates.
KeyPlan plan(std::optional<std::int64_t> incumbent = {}, bool in_base = false) {
  KeyPlan plan{.tokens = 8, .standard = block(16), .in_base = in_base};
  if (incumbent) plan.incumbent = block(*incumbent);
  return plan;
}

KeyDecision decided(const KeyPlan& plan, std::vector<CaseRecord> final) {
  return decide(plan, {.tokens = plan.tokens, .complete = true, .final = std::move(final)}, 0.02);
}

TEST(Wins, NeedsTheLeastShareOfTheTime) {
  const CaseRecord standard = timed_record("default", 100);
  EXPECT_TRUE(wins(timed_record("a", 98), standard, 0.02));
  EXPECT_FALSE(wins(timed_record("a", 98.1), standard, 0.02));
  EXPECT_FALSE(wins(timed_record("a", 100), standard, 0.0)) << "the same is no win";
}

TEST(Wins, NeedsAnIntervalThatSaysSo) {
  // The rounds' ratios are 110 / 97 and 90 / 97 in turn: an interval about 1.03 that holds 1.
  EXPECT_FALSE(wins(timed_record("a", 97), timed_record("default", 100, 18, 0.1), 0.02));
  EXPECT_TRUE(wins(timed_record("a", 97), timed_record("default", 100, 18, 0.001), 0.02));
}

TEST(Wins, NeedsSharedRounds) {
  EXPECT_FALSE(wins(timed_record("a", 50, 18), timed_record("default", 100, 20), 0.02));
  EXPECT_FALSE(wins(failed_record("a", Status::error, "no"), timed_record("default", 100), 0.02));
}

TEST(Decide, TheBestWinnerIsAdded) {
  const KeyDecision d = decided(plan(), {timed_record("default", 100), timed_record(named(32), 90),
                                         timed_record(named(64), 85)});
  EXPECT_EQ(d.verdict, KeyVerdict::added);
  EXPECT_EQ(d.config, block(64));
  EXPECT_EQ(d.hash, "hash of " + named(64));
}

TEST(Decide, WithoutAWinnerTheDefaultIsLeft) {
  const KeyDecision d =
      decided(plan(), {timed_record("default", 100), timed_record(named(32), 99)});
  EXPECT_EQ(d.verdict, KeyVerdict::left);
  EXPECT_EQ(d.config, block(16));
}

TEST(Decide, AnEntryIsChangedByAWinOverItAndTheDefault) {
  const KeyDecision d = decided(
      plan(64, true),
      {timed_record("default", 100), timed_record(named(64), 90), timed_record(named(32), 80)});
  EXPECT_EQ(d.verdict, KeyVerdict::changed);
  EXPECT_EQ(d.config, block(32));
}

TEST(Decide, AnEntryIsKeptAgainstOnePercent) {
  const KeyDecision d = decided(
      plan(64, true),
      {timed_record("default", 100), timed_record(named(64), 90), timed_record(named(32), 89.1)});
  EXPECT_EQ(d.verdict, KeyVerdict::kept);
  EXPECT_EQ(d.config, block(64));
}

// A winner over a bad entry that does not beat the default is no winner: the default is.
TEST(Decide, ABadEntryIsChangedToTheDefault) {
  const KeyDecision d = decided(
      plan(64, true),
      {timed_record("default", 100), timed_record(named(64), 130), timed_record(named(32), 100)});
  EXPECT_EQ(d.verdict, KeyVerdict::changed);
  EXPECT_EQ(d.config, block(16));
}

TEST(Decide, AnEntryWithoutALatencyIsDisplacedByWhatWinsOverTheDefault) {
  const CaseRecord wrong = failed_record(named(64), Status::inaccurate, "zeros");
  EXPECT_EQ(
      decided(plan(64, true), {timed_record("default", 100), wrong, timed_record(named(32), 90)})
          .config,
      block(32));
  const KeyDecision d = decided(plan(64, true), {timed_record("default", 100), wrong});
  EXPECT_EQ(d.config, block(16));
  EXPECT_EQ(d.verdict, KeyVerdict::changed);
  EXPECT_EQ(d.reason, "what --base has here is inaccurate: zeros; back to the default");
}

TEST(Decide, BetweenEntriesOfABaseLookupIsTheIncumbent) {
  const std::vector<CaseRecord> final = {timed_record("default", 100), timed_record(named(64), 90),
                                         timed_record(named(32), 80)};
  EXPECT_EQ(decided(plan(64, false), final).verdict, KeyVerdict::added);
  EXPECT_EQ(decided(plan(64, false), {final[0], final[1]}).verdict, KeyVerdict::left);
}

TEST(Decide, WhatWasNotMeasuredIsUnfinished) {
  EXPECT_EQ(decide(plan(), {.tokens = 8, .complete = false}, 0.02).verdict, KeyVerdict::unfinished);
  const KeyDecision d = decided(plan(), {failed_record("default", Status::crashed, "SIGSEGV")});
  EXPECT_EQ(d.verdict, KeyVerdict::unfinished);
  EXPECT_EQ(d.reason, "the default is crashed: SIGSEGV");
}

const WholeConfig as_it_is = [](const Config& config, std::int64_t) { return config; };

KeyDecision decision(std::int64_t tokens, KeyVerdict verdict, std::int64_t size) {
  return {.tokens = tokens, .verdict = verdict, .config = block(size)};
}

TEST(Merged, LeavesOutKeysThatLookupServesRightAnyway) {
  std::vector<KeyDecision> decisions = {decision(1, KeyVerdict::added, 32),
                                        decision(2, KeyVerdict::left, 32),
                                        decision(64, KeyVerdict::left, 16)};
  const ConfigTable table = merged({}, decisions, as_it_is);
  EXPECT_EQ(table.entries, (std::map<std::int64_t, Config>{{1, block(32)}, {64, block(16)}}));
  EXPECT_EQ(decisions[1].verdict, KeyVerdict::left);
  EXPECT_EQ(decisions[2].verdict, KeyVerdict::added);
}

// 8 is put in because lookup would use 4's entry; then 10 would use that of 8, not of 16 any more.
TEST(Merged, LooksAgainAfterEveryEntryThatItPutsIn) {
  std::vector<KeyDecision> decisions = {
      decision(4, KeyVerdict::added, 32), decision(9, KeyVerdict::left, 16),
      decision(11, KeyVerdict::left, 48), decision(16, KeyVerdict::added, 48)};
  const ConfigTable table = merged({}, decisions, as_it_is);
  EXPECT_EQ(choose(table, 9).config, block(16));
  EXPECT_EQ(choose(table, 11).config, block(48));
}

TEST(Merged, KeepsWhatABaseHasElsewhere) {
  std::vector<KeyDecision> decisions = {decision(2, KeyVerdict::changed, 32),
                                        decision(4, KeyVerdict::kept, 64),
                                        decision(8, KeyVerdict::unfinished, 0)};
  const ConfigTable base{.entries = {{2, block(8)}, {4, block(64)}, {8, block(7)}, {99, block(9)}}};
  EXPECT_EQ(merged(base, decisions, as_it_is).entries,
            (std::map<std::int64_t, Config>{
                {2, block(32)}, {4, block(64)}, {8, block(7)}, {99, block(9)}}));
}

const auto standard_16 = [](std::int64_t) { return block(16); };

TEST(BetweenKeys, AreTheLastOfTheLowerAndTheFirstOfTheUpper) {
  const ConfigTable table{.entries = {{4, block(32)}, {8, block(64)}, {16, block(16)}}};
  const std::vector<KeyDecision> decisions = {decision(4, KeyVerdict::added, 32),
                                              decision(8, KeyVerdict::added, 64)};
  // 6 is as near to 4 as to 8 and goes to 4; 12 goes to 8. From 13 on lookup gives the default.
  EXPECT_THAT(between_keys(table, decisions, standard_16, as_it_is), ElementsAre(6, 7, 12));
}

TEST(BetweenKeys, NextToEachOtherHaveNothingBetween) {
  const ConfigTable table{.entries = {{1, block(32)}, {2, block(64)}}};
  EXPECT_THAT(between_keys(table, {decision(1, KeyVerdict::added, 32)}, standard_16, as_it_is),
              IsEmpty());
}

TEST(BetweenKeys, OfABaseThatWereNotTouchedAreNotOurs) {
  const ConfigTable table{.entries = {{4, block(32)}, {8, block(64)}}};
  EXPECT_THAT(between_keys(table, {decision(4, KeyVerdict::kept, 32)}, standard_16, as_it_is),
              IsEmpty());
}

}  // namespace
}  // namespace moegauge
