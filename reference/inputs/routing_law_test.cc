#include "reference/inputs/routing_law.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "reference/base/input_error.h"

namespace moegauge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Kind = RoutingLaw::Kind;

constexpr std::uint64_t kSeed = 11;

Layer layer_of(std::int64_t experts, std::int64_t top_k) {
  return {.experts = experts, .top_k = top_k, .hidden_size = 16, .intermediate_size = 16};
}

std::vector<int> counts(const std::vector<std::int32_t>& ids, std::int64_t experts) {
  std::vector<int> n(static_cast<std::size_t>(experts), 0);
  for (const auto id : ids) ++n.at(static_cast<std::size_t>(id));
  return n;
}

TEST(RoutingLaw, GeneratedIdsAreDistinctWithinATokenAndInRange) {
  for (const auto& [kind, parameter] : {std::pair{Kind::uniform, 0.0},
                                        {Kind::balanced, 0.0},
                                        {Kind::single, 0.0},
                                        {Kind::zipf, 1.2},
                                        {Kind::zipf, 40.0},
                                        {Kind::zipf, 1e308},
                                        {Kind::dirichlet, 0.01},
                                        {Kind::dirichlet, 1e-300},
                                        {Kind::dirichlet, 1e6}}) {
    for (const auto& [experts, top_k] : {std::pair{8, 8}, {9, 4}, {128, 8}, {3, 1}}) {
      const auto ids = draw_ids(layer_of(experts, top_k), {kind, parameter, {}}, 200, kSeed, 0);
      ASSERT_EQ(ids.size(), 200u * static_cast<std::size_t>(top_k));
      for (std::size_t m = 0; m < 200; ++m) {
        const auto* row = &ids[m * static_cast<std::size_t>(top_k)];
        const std::set<std::int32_t> distinct(row, row + top_k);
        ASSERT_EQ(distinct.size(), static_cast<std::size_t>(top_k));
        ASSERT_GE(*distinct.begin(), 0);
        ASSERT_LT(*distinct.rbegin(), experts);
      }
    }
  }
}

TEST(RoutingLaw, UniformUsesEveryExpertAlike) {
  constexpr int experts = 64, top_k = 4, tokens = 20000;
  const auto n = counts(draw_ids(layer_of(experts, top_k), {}, tokens, kSeed, 0), experts);
  // Each expert is in a token with probability 1/16: variance tokens p (1 - p). The sum of squared
  // standardised counts is nearly chi-square with 63 degrees of freedom, here scaled by 63/64.
  const double p = static_cast<double>(top_k) / experts;
  double chi2 = 0;
  for (const int c : n) chi2 += (c - tokens * p) * (c - tokens * p) / (tokens * p * (1 - p));
  EXPECT_LT(chi2, 103.4);  // one in a thousand
  EXPECT_GT(chi2, 30.0);   // and not suspiciously even
}

TEST(RoutingLaw, BalancedUsesEveryExpertEquallyOften) {
  for (const auto& [experts, top_k, tokens] : {std::tuple{16, 2, 64}, {10, 3, 7}, {128, 8, 100}}) {
    const auto n = counts(
        draw_ids(layer_of(experts, top_k), {.kind = Kind::balanced}, tokens, kSeed, 0), experts);
    const auto [low, high] = std::ranges::minmax(n);
    EXPECT_LE(high - low, 1);
  }
}

TEST(RoutingLaw, SingleSendsAllTokensToTheFirstExpertsHeldHere) {
  Layer layer = layer_of(4, 2);
  EXPECT_THAT(draw_ids(layer, {.kind = Kind::single}, 2, kSeed, 0), ElementsAre(0, 1, 0, 1));
  layer.expert_map = {-1, -1, 0, 1};
  EXPECT_THAT(draw_ids(layer, {.kind = Kind::single}, 2, kSeed, 0), ElementsAre(2, 3, 2, 3));
  layer.expert_map = {-1, 0, -1, -1};
  EXPECT_THAT(draw_ids(layer, {.kind = Kind::single}, 1, kSeed, 0), ElementsAre(1, 0));
}

TEST(RoutingLaw, ZipfFollowsItsPowerLaw) {
  constexpr int experts = 32, tokens = 40000;
  auto n = counts(draw_ids(layer_of(experts, 1), {Kind::zipf, 1.0, {}}, tokens, kSeed, 0), experts);
  std::ranges::sort(n, std::greater<>());
  double harmonic = 0;
  for (int r = 1; r <= experts; ++r) harmonic += 1.0 / r;
  for (const int rank : {1, 2, 4}) {
    const double p = 1 / (rank * harmonic);
    EXPECT_NEAR(n[static_cast<std::size_t>(rank - 1)], tokens * p, 5 * std::sqrt(tokens * p))
        << rank;
  }
}

TEST(RoutingLaw, ZipfWithoutReplacementKeepsTheOrderOfDraws) {
  // Two experts of three with weights 1, 1/2, 1/3 (sum 11/6): the first draw has probabilities
  // 6/11, 3/11, 2/11; the second is drawn from what is left.
  constexpr int tokens = 40000;
  const auto ids = draw_ids(layer_of(3, 2), {Kind::zipf, 1.0, {}}, tokens, kSeed, 0);
  std::vector<int> first(3, 0), any(3, 0);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ++any[static_cast<std::size_t>(ids[i])];
    if (i % 2 == 0) ++first[static_cast<std::size_t>(ids[i])];
  }
  std::ranges::sort(first, std::greater<>());
  std::ranges::sort(any, std::greater<>());
  EXPECT_NEAR(first[0], tokens * 6.0 / 11, 500);
  EXPECT_NEAR(first[1], tokens * 3.0 / 11, 500);
  // P(most popular chosen) = 6/11 + 3/11 * 6/8 + 2/11 * 6/9.
  EXPECT_NEAR(any[0], tokens * (6.0 / 11 + 3.0 / 11 * 6 / 8 + 2.0 / 11 * 6 / 9), 500);
}

TEST(RoutingLaw, HotExpertsDependOnTheSeedAndNotOnTheStream) {
  const auto hottest = [](std::uint64_t seed, std::uint64_t stream) {
    const auto n = counts(draw_ids(layer_of(64, 1), {Kind::zipf, 2.0, {}}, 500, seed, stream), 64);
    return std::ranges::max_element(n) - n.begin();
  };
  EXPECT_EQ(hottest(1, 0), hottest(1, 9));
  const std::set<std::ptrdiff_t> seeds = {hottest(1, 0), hottest(2, 0), hottest(3, 0),
                                          hottest(4, 0)};
  EXPECT_GT(seeds.size(), 1u);
}

TEST(RoutingLaw, SmallDirichletParametersMeanFewBusyExperts) {
  // The expected sum of squared popularities is (a + 1) / (E a + 1); averaged over 40 draws.
  constexpr int experts = 64, tokens = 2000, draws = 40;
  for (const double a : {0.1, 1.0, 100.0}) {
    double concentration = 0;
    for (std::uint64_t seed = 0; seed < draws; ++seed) {
      const auto n = counts(
          draw_ids(layer_of(experts, 1), {Kind::dirichlet, a, {}}, tokens, seed, 0), experts);
      for (const int c : n)
        concentration += static_cast<double>(c) * (c - 1) / tokens / (tokens - 1);
    }
    const double expected = (a + 1) / (experts * a + 1);
    EXPECT_NEAR(concentration / draws, expected, 0.25 * expected) << a;
  }
}

TEST(RoutingLaw, StreamsDifferAndRepeat) {
  const Layer layer = layer_of(128, 8);
  EXPECT_EQ(draw_ids(layer, {}, 64, kSeed, 1), draw_ids(layer, {}, 64, kSeed, 1));
  EXPECT_NE(draw_ids(layer, {}, 64, kSeed, 1), draw_ids(layer, {}, 64, kSeed, 2));
  EXPECT_NE(draw_ids(layer, {}, 64, kSeed, 1), draw_ids(layer, {}, 64, kSeed + 1, 1));
}

TEST(RoutingLaw, MoreDistinctExpertsThanThereAreIsRefused) {
  EXPECT_THROW(draw_ids(layer_of(4, 5), {}, 1, kSeed, 0), InputError);
}

class TraceFile {
 public:
  explicit TraceFile(const std::string& text)
      : path_(std::filesystem::path(testing::TempDir()) / "moegauge_trace_test.csv") {
    std::ofstream(path_) << text;
  }
  ~TraceFile() { std::filesystem::remove(path_); }
  RoutingLaw parse(const Layer& layer) const { return parse_routing_law(path_.string(), layer); }
  std::string error(const Layer& layer) const {
    try {
      parse(layer);
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  }

 private:
  std::filesystem::path path_;
};

TEST(RoutingTrace, CommasBlanksCommentsAndDroppedPairsAreRead) {
  const TraceFile file("# ids\n0,3\n\n1 2  # hot\r\n-1, 3\n");
  const auto law = file.parse(layer_of(4, 2));
  EXPECT_EQ(law.kind, Kind::trace);
  EXPECT_THAT(law.trace, ElementsAre(0, 3, 1, 2, -1, 3));
}

TEST(RoutingTrace, RowsAreUsedInTurnAndStreamsGoOnWhereOthersEnd) {
  const RoutingLaw law{.kind = Kind::trace, .parameter = 0, .trace = {0, 1, 2}};
  const Layer layer = layer_of(4, 1);
  EXPECT_THAT(draw_ids(layer, law, 4, kSeed, 0), ElementsAre(0, 1, 2, 0));
  EXPECT_THAT(draw_ids(layer, law, 4, kSeed, 1), ElementsAre(1, 2, 0, 1));
}

TEST(RoutingTrace, ErrorsNameTheLine) {
  const Layer layer = layer_of(4, 2);
  EXPECT_THAT(TraceFile("0 1\n0 4\n").error(layer),
              HasSubstr("test.csv:2: '4' is not an expert id"));
  EXPECT_THAT(TraceFile("0 1\n0 1 2\n").error(layer), HasSubstr(":2: 3 ids; 2 (top_k)"));
  EXPECT_THAT(TraceFile("id0,id1\n").error(layer), HasSubstr(":1: 'id0' is not an expert id"));
  EXPECT_THAT(TraceFile("0 -2\n").error(layer), HasSubstr(":1: '-2'"));
  EXPECT_THAT(TraceFile("0 1.5\n").error(layer), HasSubstr(":1: '1.5'"));
  EXPECT_THAT(TraceFile("0 99999999999\n").error(layer), HasSubstr(":1: '99999999999'"));
  EXPECT_THAT(TraceFile("# nothing\n").error(layer), HasSubstr("holds no ids"));
}

TEST(RoutingTrace, ABinaryFileIsOnePrintableLine) {
  const TraceFile file(std::string("0 1\n\0\x1b[31m 1\n", 14));
  EXPECT_THAT(file.error(layer_of(4, 2)), HasSubstr(":2: '??[31m' is not an expert id"));
}

TEST(RoutingTrace, AFolderIsNoTrace) {
  try {
    parse_routing_law(testing::TempDir(), layer_of(4, 2));
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("it is a folder; a regular file is expected"));
  }
}

TEST(ParseRoutingLaw, NamesAndParameters) {
  const Layer layer = layer_of(4, 2);
  EXPECT_EQ(parse_routing_law("uniform", layer).kind, Kind::uniform);
  EXPECT_EQ(parse_routing_law("balanced", layer).kind, Kind::balanced);
  EXPECT_EQ(parse_routing_law("single", layer).kind, Kind::single);
  EXPECT_EQ(parse_routing_law("zipf:1.25", layer).kind, Kind::zipf);
  EXPECT_EQ(parse_routing_law("zipf:1.25", layer).parameter, 1.25);
  EXPECT_EQ(parse_routing_law("dirichlet:0.5", layer).kind, Kind::dirichlet);
}

TEST(ParseRoutingLaw, WhatIsNoLawIsRefused) {
  const Layer layer = layer_of(4, 2);
  for (const auto* text : {"", "unifrom", "zipf", "zipf:", "zipf:x", "zipf:-1", "zipf:inf",
                           "zipf:nan", "dirichlet:0", "dirichlet:1x", "uniform:1", "/"}) {
    EXPECT_THROW(parse_routing_law(text, layer), InputError) << text;
  }
}

}  // namespace
}  // namespace moegauge
