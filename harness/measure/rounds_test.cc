#include "harness/measure/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace moegauge {
namespace {

using ::testing::ElementsAre;

// Uniform in [0, 1): splitmix64 (Steele, Lea and Flood 2014), the same on every machine.
class Noise {
 public:
  double operator()() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }

 private:
  std::uint64_t state_ = 20261130;
};

Member scripted(std::string name, std::int64_t calls,
                const std::function<double()>& seconds_per_call) {
  return {std::move(name), calls, [seconds_per_call](std::int64_t n) -> Expected<double, Fault> {
            return seconds_per_call() * static_cast<double>(n);
          }};
}

const auto nobody_listens = [](std::size_t) {};

TEST(RoundOrder, OfTwoIsABBA) {
  EXPECT_THAT(round_order(2, 1, 0), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(round_order(2, 7, 5), ElementsAre(0, 1, 1, 0));
}

TEST(RoundOrder, OfOneIsTwoRowsOfIt) { EXPECT_THAT(round_order(1, 1, 0), ElementsAre(0, 0)); }

TEST(RoundOrder, OfMoreIsAPermutationAndItsReverse) {
  const auto order = round_order(5, 1, 0);
  ASSERT_EQ(order.size(), 10u);
  std::vector<std::size_t> forward(order.begin(), order.begin() + 5);
  const std::vector<std::size_t> backward(order.rbegin(), order.rbegin() + 5);
  EXPECT_EQ(forward, backward);
  EXPECT_THAT(forward, ::testing::UnorderedElementsAre(0, 1, 2, 3, 4));
}

TEST(RoundOrder, OfMoreChangesFromRoundToRoundAndIsRepeatedByTheSeed) {
  EXPECT_EQ(round_order(6, 1, 3), round_order(6, 1, 3));
  EXPECT_NE(round_order(6, 1, 3), round_order(6, 1, 4));
  EXPECT_NE(round_order(6, 1, 3), round_order(6, 2, 3));
}

TEST(MeasureRounds, RunsTheRowsInThatOrderAndTellsBeforeEach) {
  std::string ran, told;
  const std::vector<Member> members = {{"a", 3,
                                        [&](std::int64_t) -> Expected<double, Fault> {
                                          ran += 'A';
                                          return 3e-3;
                                        }},
                                       {"b", 2, [&](std::int64_t) -> Expected<double, Fault> {
                                          ran += 'B';
                                          return 4e-3;
                                        }}};
  const Rounds rounds =
      measure_rounds(members, {}, 1, [&](std::size_t i) { told += i == 0 ? 'A' : 'B'; });
  ASSERT_EQ(rounds.rounds, 7);
  EXPECT_EQ(ran, "ABBAABBAABBAABBAABBAABBAABBA");
  EXPECT_EQ(told, ran);
}

// 3 ms for 3 calls is 1 ms each, 4 ms for 2 calls 2 ms each.
TEST(MeasureRounds, ASampleIsTheMeanOfARowsCalls) {
  const std::vector<Member> members = {{"a", 3,
                                        [](std::int64_t n) -> Expected<double, Fault> {
                                          EXPECT_EQ(n, 3);
                                          return 3e-3;
                                        }},
                                       {"b", 2, [](std::int64_t n) -> Expected<double, Fault> {
                                          EXPECT_EQ(n, 2);
                                          return 4e-3;
                                        }}};
  const Rounds rounds = measure_rounds(members, {}, 1, nobody_listens);
  for (const double sample : rounds.members[0].seconds_per_call) EXPECT_DOUBLE_EQ(sample, 1e-3);
  for (const double sample : rounds.members[1].seconds_per_call) EXPECT_DOUBLE_EQ(sample, 2e-3);
}

// Constant latency is known after the least rounds: [min, max] of 6 values covers the median with
// 1 - 2/64 < 98%, of 7 with 1 - 2/128 = 98.4%. 9 rows alone would be 5 rounds.
TEST(StoppingRule, StopsAtTheLeastRowsWhereNothingVaries) {
  const auto constant = [] { return 1e-3; };
  const std::vector<Member> one = {scripted("a", 1, constant)};
  const std::vector<Member> two = {scripted("a", 1, constant), scripted("b", 1, constant)};
  EXPECT_EQ(measure_rounds(one, {}, 1, nobody_listens).members[0].seconds_per_call.size(), 14u);
  EXPECT_EQ(measure_rounds(two, {}, 1, nobody_listens).members[0].seconds_per_call.size(), 14u);
}

// Uniform noise of +-2%: the median's interval of n samples is about +-1.96 * (4%/2) / sqrt(n) wide
// (the sample median's standard error is range / (2 sqrt n)), so that +-1% needs about 15 rows; far
// more than 9 and far fewer than 200.
TEST(StoppingRule, GoesOnUntilTheMedianIsKnown) {
  Noise noise;
  const std::vector<Member> members = {
      scripted("a", 1, [&noise] { return 1e-3 * (0.98 + 0.04 * noise()); })};
  StoppingRule rule;
  rule.seconds_per_member = 1e9;
  const Rounds rounds = measure_rounds(members, rule, 1, nobody_listens);
  EXPECT_TRUE(rounds.members[0].stable);
  EXPECT_GE(rounds.members[0].seconds_per_call.size(), 14u);
  EXPECT_LE(rounds.members[0].seconds_per_call.size(), 60u);
}

// A steady rival waits for the noisy one: both get the same rows, so that every round has a ratio.
TEST(StoppingRule, WaitsForEveryMember) {
  Noise noise;
  const std::vector<Member> members = {
      scripted("steady", 1, [] { return 1e-3; }),
      scripted("noisy", 1, [&noise] { return 1e-3 * (0.95 + 0.1 * noise()); })};
  StoppingRule rule;
  rule.seconds_per_member = 1e9;
  const Rounds rounds = measure_rounds(members, rule, 1, nobody_listens);
  EXPECT_GT(rounds.rounds, 7);
  EXPECT_EQ(rounds.members[0].seconds_per_call.size(), rounds.members[1].seconds_per_call.size());
}

// Rows of 10 ms against a cap of 0.5 s: 25 rounds of two rows; noise of a factor of 3 never
// settles.
TEST(StoppingRule, GivesUpAtTheCapAndSaysSo) {
  Noise noise;
  const std::vector<Member> members = {
      scripted("a", 10, [&noise] { return 0.5e-3 + 1e-3 * noise(); })};
  StoppingRule rule;
  rule.seconds_per_member = 0.5;
  const Rounds rounds = measure_rounds(members, rule, 1, nobody_listens);
  EXPECT_FALSE(rounds.members[0].stable);
  EXPECT_NEAR(static_cast<double>(rounds.rounds), 25, 3);
}

TEST(StoppingRule, TakesTheLeastRowsHoweverSlowTheKernel) {
  const std::vector<Member> members = {scripted("slow", 1, [] { return 100.0; })};
  EXPECT_EQ(measure_rounds(members, {}, 1, nobody_listens).rounds, 7);
}

// The interval that is reported is the one that stopped the measurement, which chance narrows. Rows
// of a round share half of their variance, as on a machine whose clock wanders. The true median of
// the noise is exactly 1, so that every miss is one. 2% of noise needs about 30 rounds; 600 runs
// know a coverage of 95% to +-0.9% (one standard error).
TEST(StoppingRule, ItsIntervalCoversTheMedianInSpiteOfLookingAfterEveryRound) {
  Noise noise;
  const auto normal = [&noise] {  // Box and Muller
    return std::sqrt(-2 * std::log1p(-noise())) * std::cos(2 * 3.14159265358979323846 * noise());
  };
  StoppingRule rule;
  rule.seconds_per_member = 1e9;
  constexpr int runs = 600;
  int covered = 0;
  for (int run = 0; run < runs; ++run) {
    double shared = 0;
    bool first = true;
    const auto row = [&] {
      if (first) shared = normal();
      first = !first;
      return 1 + 0.02 * (shared + normal()) / std::sqrt(2.0);
    };
    const std::vector<Member> members = {scripted("a", 1, row)};
    const Rounds rounds = measure_rounds(members, rule, 1, nobody_listens);
    const auto means = round_means(rounds.members[0].seconds_per_call);
    const MedianInterval interval = median_interval(means, rule.confidence);
    covered += interval.low <= 1 && 1 <= interval.high;
  }
  EXPECT_GE(covered, 0.95 * runs);
  EXPECT_LT(covered, 0.998 * runs) << "so wide that it stops for nothing";
}

TEST(MeasureRounds, StopsAtAFaultAndNamesTheMember) {
  int runs_of_a = 0;
  const std::vector<Member> members = {
      scripted("a", 1,
               [&runs_of_a] {
                 ++runs_of_a;
                 return 1e-3;
               }),
      {"b", 1, [](std::int64_t) -> Expected<double, Fault> {
         return Unexpected{Fault{FaultKind::infrastructure, "the device fell off the bus"}};
       }}};
  const Rounds rounds = measure_rounds(members, {}, 1, nobody_listens);
  ASSERT_TRUE(rounds.failure);
  EXPECT_EQ(rounds.failure->member, 1u);
  EXPECT_EQ(rounds.failure->fault.sentence, "the device fell off the bus");
  EXPECT_EQ(runs_of_a, 1) << "nothing runs after a fault";
}

// The point of A B B A: where the machine slows down by 1% per row, the sums of a round still
// agree: rows 0 and 3 against rows 1 and 2 of an arithmetic progression.
TEST(MeasureRounds, LinearDriftCancelsWithinARound) {
  double now = 1e-3;
  const auto drifting = [&now] { return now += 1e-5; };
  const std::vector<Member> members = {scripted("a", 1, drifting), scripted("b", 1, drifting)};
  const Rounds rounds = measure_rounds(members, {}, 1, nobody_listens);
  const auto& a = rounds.members[0].seconds_per_call;
  const auto& b = rounds.members[1].seconds_per_call;
  for (std::size_t i = 0; i + 1 < a.size(); i += 2) {
    EXPECT_NEAR(a[i] + a[i + 1], b[i] + b[i + 1], 1e-12);
  }
}

}  // namespace
}  // namespace moegauge
