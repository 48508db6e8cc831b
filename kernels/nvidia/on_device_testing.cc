#include "kernels/nvidia/on_device_testing.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "reference/dtype.h"
#include "reference/error.h"
#include "reference/inputs.h"
#include "reference/oracle.h"

namespace moegauge::on_device {

std::vector<std::int32_t> first_local(std::size_t experts, std::int32_t local) {
  std::vector<std::int32_t> map(experts, -1);
  for (std::int32_t e = 0; e < local; ++e) map[static_cast<std::size_t>(e)] = e;
  return map;
}

namespace {

using Output = std::vector<std::uint16_t>;

constexpr std::uint16_t bf16_nan = 0x7FC0, bf16_infinity = 0x7F80;
bool is_nan(std::uint16_t bits) { return (bits & 0x7FFF) > 0x7F80; }
bool is_finite(std::uint16_t bits) { return (bits & 0x7F80) != 0x7F80; }

Problem problem_of(const LayerCase& c) {
  return {c.layer, std::shared_ptr<const Scheme>(make_scheme(c.scheme)), 0};
}

OwnedInputs inputs_of(const LayerCase& c, std::int64_t tokens, std::uint64_t stream = 0) {
  const Problem problem = problem_of(c);
  return generate_inputs(c.layer, Distribution::gaussian, {}, tokens, 5, stream,
                         problem.scheme.get());
}

class OnDevice : public testing::TestWithParam<LayerCase> {
 protected:
  void SetUp() override {
    const Availability here = backend().availability();
    if (!here.present) GTEST_SKIP() << here.detail;
    problem_ = problem_of(GetParam());
    experts_ = generated_experts(layer(), problem_.scheme, Distribution::gaussian, 5, 2);
    auto loaded = backend().load(problem_, *experts_, 2);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().sentence;
    loaded_ = std::move(*loaded);
  }

  const Layer& layer() const { return GetParam().layer; }

  std::unique_ptr<Plan> plan(std::int64_t tokens, const Config& config = {}, int slots = 1) {
    auto made = loaded_->plan(tokens, config, slots);
    EXPECT_TRUE(made.has_value()) << made.error().sentence;
    return made ? std::move(*made) : nullptr;
  }

  // One poisoned run.
  Output run(Plan& plan, const OwnedInputs& in, const RunRequest& request = {}) {
    for (int slot = 0; slot < plan.slots(); ++slot) expect_none(plan.set_inputs(slot, in.view()));
    expect_none(plan.poison());
    const auto seconds = plan.run(request);
    EXPECT_TRUE(seconds.has_value()) << seconds.error().sentence;
    return fetch(plan, in, 0);
  }
  Output fetch(Plan& plan, const OwnedInputs& in, int slot) {
    Output y(in.x.size());
    expect_none(plan.fetch(slot, y));
    return y;
  }
  static void expect_none(const std::optional<Fault>& fault) {
    EXPECT_FALSE(fault.has_value()) << (fault ? fault->sentence : "");
  }

  std::span<const std::uint16_t> row(const Output& y, std::int64_t token) const {
    const auto k = static_cast<std::size_t>(layer().hidden_size);
    return std::span(y).subspan(static_cast<std::size_t>(token) * k, k);
  }

  void expect_close(const Output& y, const OwnedInputs& in, const Numerics& numerics) {
    const Truth truth = compute_truth(layer(), *problem_.scheme, numerics, *experts_, in.view(), 4);
    std::vector<double> values;
    for (const std::uint16_t bits : y)
      values.push_back(static_cast<double>(to_float(layer().dtype, bits)));
    const ErrorMetrics error = measure_error(values, truth.emulated, truth.magnitude, in.tokens,
                                             layer().hidden_size, {}, layer().dtype);
    const bool reduced = numerics.accumulate == Accumulate::reduced;
    const ErrorLimits limits =
        problem_.scheme->error_limits(layer().dtype, reduced).over(in.tokens);
    EXPECT_EQ(error.non_finite, 0);
    EXPECT_LE(error.relative_l2, limits.relative_l2);
    EXPECT_LE(error.worst_token, limits.worst_token) << "row " << error.worst_token_row;
  }

  Problem problem_;
  std::unique_ptr<ExpertSource> experts_;
  std::unique_ptr<LoadedLayer> loaded_;
};

INSTANTIATE_TEST_SUITE_P(Layers, OnDevice, testing::ValuesIn(layer_cases()),
                         [](const auto& param) { return std::string(param.param.name); });

TEST_P(OnDevice, EveryKindOfTileAgreesWithTheOracle) {
  for (const std::int64_t tokens : {1, 3, 40, 200, 700}) {
    const OwnedInputs in = inputs_of(GetParam(), tokens);
    for (std::size_t c = 0; c < GetParam().configs.size(); ++c) {
      SCOPED_TRACE(testing::Message() << tokens << " tokens, configuration " << c);
      const auto p = plan(tokens, GetParam().configs[c]);
      ASSERT_NE(p, nullptr);
      expect_close(run(*p, in), in, p->identity().numerics);
    }
  }
}

TEST_P(OnDevice, NoTokensAreASuccessThatLaunchesNothing) {
  const OwnedInputs none = inputs_of(GetParam(), 0);
  for (const Launch launch : {Launch::eager, Launch::graph}) {
    const auto p = plan(0);
    ASSERT_NE(p, nullptr);
    EXPECT_TRUE(run(*p, none, {.calls = 3, .launch = launch}).empty());
  }
}

TEST_P(OnDevice, EveryWayOfLaunchingGivesTheSameBits) {
  constexpr std::int64_t tokens = 40;
  const OwnedInputs in = inputs_of(GetParam(), tokens);
  const auto p = plan(tokens, {}, 4);
  ASSERT_NE(p, nullptr);
  const Output once = run(*p, in);
  for (const Cache cache : {Cache::cold_weights, Cache::cold, Cache::hot}) {
    for (const Launch launch : {Launch::eager, Launch::graph}) {
      SCOPED_TRACE(testing::Message() << "cache " << static_cast<int>(cache) << ", launch "
                                      << static_cast<int>(launch));
      EXPECT_EQ(run(*p, in, {.calls = 70, .cache = cache, .launch = launch}), once);
      if (cache == Cache::hot) continue;  // the first slot only
      EXPECT_EQ(fetch(*p, in, 3), once);
    }
  }
}

TEST_P(OnDevice, SlotsKeepTheirOwnInputs) {
  constexpr std::int64_t tokens = 17;
  const auto p = plan(tokens, {}, 2);
  ASSERT_NE(p, nullptr);
  const OwnedInputs first = inputs_of(GetParam(), tokens, 1),
                    second = inputs_of(GetParam(), tokens, 2);
  const Output first_alone = run(*p, first), second_alone = run(*p, second);
  ASSERT_NE(first_alone, second_alone);
  expect_none(p->set_inputs(0, first.view()));
  expect_none(p->set_inputs(1, second.view()));
  expect_none(p->poison());
  ASSERT_TRUE(p->run({.calls = 2, .launch = Launch::graph}).has_value());
  EXPECT_EQ(fetch(*p, first, 0), first_alone);
  EXPECT_EQ(fetch(*p, second, 1), second_alone);
}

TEST_P(OnDevice, ANaNInATokenStaysInThatToken) {
  const OperandTraits activation = problem_.scheme->traits().activation;
  if (activation.scale != ScaleKind::none && activation.unit.rows == 0 &&
      !activation.static_scale) {
    GTEST_SKIP() << "one scale for the call: it may have been this token's";
  }
  for (const std::int64_t tokens : {9, 300}) {
    for (const Config& config : GetParam().configs) {
      OwnedInputs in = inputs_of(GetParam(), tokens);
      // Every choice of the token is of this rank, so that the NaN must come out.
      const std::int64_t bad = tokens / 2, k = layer().hidden_size;
      for (std::int64_t t = 0; t < layer().top_k; ++t) {
        in.topk_ids[static_cast<std::size_t>(bad * layer().top_k + t)] =
            static_cast<std::int32_t>(t);
      }
      const auto p = plan(tokens, config);
      ASSERT_NE(p, nullptr);
      const Output clean = run(*p, in);
      for (const std::uint16_t poison : {bf16_nan, bf16_infinity}) {
        in.x[static_cast<std::size_t>(bad * k + k / 3)] = poison;
        const Output y = run(*p, in);
        for (std::int64_t m = 0; m < tokens; ++m) {
          if (m != bad) {
            EXPECT_TRUE(std::ranges::equal(row(y, m), row(clean, m)))
                << tokens << " tokens, token " << m;
          } else if (poison == bf16_nan) {
            EXPECT_TRUE(std::ranges::all_of(row(y, m), is_nan)) << tokens << " tokens";
          }
        }
      }
    }
  }
}

TEST_P(OnDevice, DroppedPairsAndOtherRanksExpertsContributeNothing) {
  constexpr std::int64_t tokens = 30;
  const auto p = plan(tokens);
  ASSERT_NE(p, nullptr);
  OwnedInputs in = inputs_of(GetParam(), tokens);
  for (std::size_t i = 0; i < in.topk_ids.size(); i += 3) in.topk_ids[i] = -1;
  const std::int64_t dropped = 4;
  for (std::int64_t t = 0; t < layer().top_k; ++t) {
    in.topk_ids[static_cast<std::size_t>(dropped * layer().top_k + t)] = -1;
  }
  const Output y = run(*p, in);
  EXPECT_TRUE(std::ranges::all_of(row(y, dropped),
                                  [](std::uint16_t bits) { return (bits & 0x7FFF) == 0; }));
  expect_close(y, in, p->identity().numerics);

  std::ranges::fill(in.topk_ids, -1);
  const Output nothing = run(*p, in);
  EXPECT_TRUE(
      std::ranges::all_of(nothing, [](std::uint16_t bits) { return (bits & 0x7FFF) == 0; }));
}

TEST_P(OnDevice, OneExpertMayTakeEveryToken) {
  for (const std::int64_t tokens : {64, 600}) {
    OwnedInputs in = inputs_of(GetParam(), tokens);
    for (std::size_t i = 0; i < in.topk_ids.size(); ++i) {
      in.topk_ids[i] = static_cast<std::int32_t>(i % static_cast<std::size_t>(layer().top_k));
    }
    const auto p = plan(tokens);
    ASSERT_NE(p, nullptr);
    const Output y = run(*p, in);
    EXPECT_TRUE(std::ranges::all_of(y, is_finite));
    expect_close(y, in, p->identity().numerics);
  }
}

TEST_P(OnDevice, ARunNeverDependsOnTheOneBefore) {
  // Of 3 tokens some kinds of tile make the layer in one launch, which leaves the next its
  // counters.
  for (const std::int64_t tokens : {3, 200}) {
    const OwnedInputs in = inputs_of(GetParam(), tokens);
    for (const Config& config : GetParam().configs) {
      const auto p = plan(tokens, config);
      ASSERT_NE(p, nullptr);
      const Output first = run(*p, in);
      for (int again = 0; again < 20; ++again)
        ASSERT_EQ(run(*p, in, {.calls = 3 + again % 2, .launch = Launch::graph}), first);
    }
  }
}

}  // namespace
}  // namespace moegauge::on_device
