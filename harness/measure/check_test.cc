#include "harness/measure/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "harness/testing/scripted_backend.h"

namespace moegauge {
namespace {

using ::testing::HasSubstr;

constexpr ErrorLimits limits{.relative_l2 = 0.001, .worst_token = 0.01};

ErrorReport report(double implementation, double worst_token, double quantization, double total) {
  ErrorReport error;
  error.implementation.relative_l2 = implementation;
  error.implementation.worst_token = worst_token;
  error.quantization.relative_l2 = quantization;
  error.total.relative_l2 = total;
  return error;
}

TEST(BrokenLimits, NothingWhereEverythingHolds) {
  EXPECT_FALSE(broken_limits(report(0.001, 0.01, 0.06, 0.0618), limits));
}

TEST(BrokenLimits, NamesBothNumbers) {
  EXPECT_EQ(broken_limits(report(0.002, 0.01, 0, 0), limits),
            "error.implementation.relative_l2 0.002 exceeds 0.001");
}

TEST(BrokenLimits, OneBadRowIsEnough) {
  EXPECT_THAT(*broken_limits(report(0.0005, 0.5, 0, 0), limits),
              HasSubstr("worst_token 0.5 exceeds 0.01"));
}

// 1.03 * 0.06 = 0.0618.
TEST(BrokenLimits, TheTotalMayPassQuantizationByThreePercent) {
  EXPECT_FALSE(broken_limits(report(0, 0, 0.06, 0.0617), limits));
  EXPECT_THAT(*broken_limits(report(0, 0, 0.06, 0.0619), limits),
              HasSubstr("error.total.relative_l2 0.0619 exceeds 0.0618"));
}

// A 16-bit format costs nothing to speak of: total is then all the kernel's own rounding.
TEST(BrokenLimits, TheTotalIsFreeWhereQuantizationCostsNothing) {
  EXPECT_FALSE(broken_limits(report(0, 0, 0.01, 0.5), limits));
}

TEST(BrokenLimits, NaNAndInfinityBreakThem) {
  EXPECT_TRUE(broken_limits(report(std::numeric_limits<double>::quiet_NaN(), 0, 0, 0), limits));
  EXPECT_TRUE(broken_limits(report(0, std::numeric_limits<double>::infinity(), 0, 0), limits));
  EXPECT_TRUE(broken_limits(report(0, 0, 0.06, std::numeric_limits<double>::quiet_NaN()), limits));
}

TEST(BrokenLimits, NonFiniteOutputsBreakThemWhateverTheNorm) {
  ErrorReport error = report(0, 0, 0, 0);
  error.implementation.non_finite = 3;
  EXPECT_THAT(*broken_limits(error, limits), HasSubstr("3 outputs are not finite"));
}

Layer tiny_layer() {
  Layer layer;
  layer.experts = 4;
  layer.top_k = 2;
  layer.hidden_size = 64;
  layer.intermediate_size = 32;
  return layer;
}

TEST(CheckInputs, UpTo256TokensEveryRowIsItsOwn) {
  const Layer layer = tiny_layer();
  const auto inputs =
      make_check_inputs(layer, Distribution::gaussian, parse_routing_law("uniform", layer), 5, 1);
  EXPECT_EQ(inputs.pool.tokens, 5);
  EXPECT_THAT(inputs.repeated.index, ::testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(inputs.repeated.inputs.x, inputs.pool.x);
}

TEST(CheckInputs, BeyondThatEveryRowIsOneOfAPoolOf256) {
  const Layer layer = tiny_layer();
  const auto inputs =
      make_check_inputs(layer, Distribution::gaussian, parse_routing_law("uniform", layer), 700, 1);
  EXPECT_EQ(inputs.pool.tokens, 256);
  ASSERT_EQ(inputs.repeated.index.size(), 700u);
  const std::set<std::int32_t> used(inputs.repeated.index.begin(), inputs.repeated.index.end());
  EXPECT_EQ(used.size(), 256u) << "every pool row is checked";
  const auto row = static_cast<std::size_t>(inputs.repeated.index[699]);
  EXPECT_EQ(inputs.repeated.inputs.x[699 * 64 + 7], inputs.pool.x[row * 64 + 7]);
}

// Generated weights but for one of expert 2's w13, which is NaN.
class OneNanWeight final : public ExpertSource {
 public:
  explicit OneNanWeight(const Problem& problem)
      : whole_(generated_experts(problem.layer, problem.scheme, Distribution::gaussian, 1)) {}
  void quantized(std::int64_t expert, const Matrix& out) const override {
    whole_->quantized(expert, out);
    const std::array<std::byte, 2> nan = {std::byte{0xC0}, std::byte{0x7F}};
    if (expert == 2 && out.shape.role == Role::w13) std::ranges::copy(nan, out.values.begin());
  }
  void original(std::int64_t expert, const MatrixShape& shape, std::int64_t begin, std::int64_t end,
                std::span<float> out) const override {
    whole_->original(expert, shape, begin, end, out);
    if (expert == 2 && shape.role == Role::w13 && begin == 0) out[0] = std::nanf("");
  }
  std::vector<float> bias(std::int64_t, Role) const override { return {}; }

 private:
  std::unique_ptr<ExpertSource> whole_;
};

// Runs of check_plan: other rows, the checked call, then repetitions of it.
constexpr int kAgain = 2;

// The scripted backend answers with the oracle's own bits; each test spoils them in one way.
class CheckPlan : public ::testing::Test {
 protected:
  Expected<CheckOutcome, Fault> check(Script script, std::int64_t tokens = 300,
                                      std::int64_t sets = 1, bool nan_weight = false) {
    const Problem problem{tiny_layer(), make_scheme("bf16"), tokens};
    auto experts = generated_experts(problem.layer, problem.scheme, Distribution::gaussian, 1);
    if (nan_weight) experts = std::make_unique<OneNanWeight>(problem);
    const auto inputs = make_check_inputs(problem.layer, Distribution::gaussian,
                                          parse_routing_law("uniform", problem.layer), tokens, 1);
    const Truth truth =
        compute_truth(problem.layer, *problem.scheme, Numerics{}, *experts, inputs.pool.view(), 1);
    script.name = "scripted";
    const ScriptedBackend backend(std::move(script));
    auto loaded = backend.load(problem, *experts, static_cast<int>(sets));
    auto plan = (*loaded)->plan(tokens, {}, 2);
    const Yardstick yardstick{problem.layer, inputs, truth,
                              problem.scheme->error_limits(Dtype::bf16, false)};
    return check_plan(**plan, yardstick, {.calls = 8}, sets);
  }
};

TEST_F(CheckPlan, TheOraclesOwnBitsPass) {
  const auto outcome = check({});
  EXPECT_FALSE(outcome->wrong);
  EXPECT_EQ(outcome->error.implementation.matched, 1.0);
}

// One row of 300, its sign turned: at distance 2 from the truth, while the total moves by about
// 2 / sqrt(300) = 0.115.
TEST_F(CheckPlan, OneBadRowAmongManyIsCaught) {
  const auto outcome = check({.name = "", .spoil = [](std::span<std::uint16_t> y, int) {
                                for (std::size_t k = 0; k < 64; ++k)
                                  y[std::size_t{123} * 64 + k] ^= 0x8000;
                              }});
  ASSERT_TRUE(outcome->wrong);
  EXPECT_NEAR(outcome->error.implementation.worst_token, 2, 0.01);
  EXPECT_EQ(outcome->error.implementation.worst_token_row, 123);
}

TEST_F(CheckPlan, AnOutputThatIsNeverWrittenIsCaughtByItsPoison) {
  const auto outcome = check({.name = "", .spoil = [](std::span<std::uint16_t> y, int) {
                                for (std::size_t k = 0; k < 64; ++k)
                                  y[k] = 0x7FFF;  // as poison() left it
                              }});
  ASSERT_TRUE(outcome->wrong);
  EXPECT_THAT(*outcome->wrong, HasSubstr("64 outputs are not finite"));
}

TEST_F(CheckPlan, OneElementThatDiffersBetweenRunsIsCaught) {
  const auto outcome = check({.name = "", .spoil = [](std::span<std::uint16_t> y, int run) {
                                if (run == kAgain) y[5] ^= 1;
                              }});
  ASSERT_TRUE(outcome->wrong);
  EXPECT_THAT(*outcome->wrong, HasSubstr("not deterministic"));
  EXPECT_THAT(*outcome->wrong, HasSubstr("1 of 19200 elements, first y[0, 5] of slot 0"));
}

// Eight sets and two slots: eight calls in a row leave the outputs of sets 6 and 7 alone.
class EverySet : public CheckPlan, public ::testing::WithParamInterface<std::size_t> {};

TEST_P(EverySet, IsHeldAgainstTheFirst) {
  const std::size_t bad = GetParam();
  const auto outcome = check({.name = "",
                              .spoil_set =
                                  [bad](std::span<std::uint16_t> y, std::size_t set) {
                                    if (set == bad) y[64] ^= 1;
                                  }},
                             3, 8);
  ASSERT_TRUE(outcome->wrong);
  const std::string slot = bad % 2 == 0 ? "0" : "1";
  EXPECT_EQ(*outcome->wrong, "not deterministic: two runs of the same rows, on weight sets 0 and " +
                                 std::to_string(bad) +
                                 ", differ in 1 of 192 elements, first y[1, 0] of slot " + slot);
}

INSTANTIATE_TEST_SUITE_P(ButTheFirst, EverySet, ::testing::Range<std::size_t>(1, 8));

TEST_F(CheckPlan, APoisonThatFillsNothingIsABrokenContract) {
  const auto outcome = check({.name = "", .poisons = false});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, FaultKind::error);
  EXPECT_THAT(outcome.error().sentence,
              HasSubstr("contract of Plan::poison() in kernels/backend.h"));
  EXPECT_THAT(outcome.error().sentence, HasSubstr("y[0, 0] of slot 0 is not NaN"));
}

// As a workspace does that poison() forgot and the kernel fails to write: it holds what an earlier
// run left. Had that run seen the same rows, the answer would be right.
TEST_F(CheckPlan, ARowLeftByAnEarlierRunIsWrong) {
  std::vector<std::uint16_t> earlier;
  const auto outcome = check({.name = "", .spoil = [&earlier](std::span<std::uint16_t> y, int) {
                                const std::vector<std::uint16_t> now(y.begin(), y.end());
                                if (!earlier.empty()) {
                                  std::ranges::copy(std::span(earlier).first(64), y.begin());
                                }
                                earlier = now;
                              }});
  ASSERT_TRUE(outcome->wrong);
  EXPECT_EQ(outcome->error.implementation.worst_token_row, 0);
}

TEST_F(CheckPlan, AFaultIsAFaultAndNoVerdict) {
  const auto outcome =
      check({.name = "", .on_run = [](int) {
               return std::optional(Fault{FaultKind::error, "illegal memory access"});
             }});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().sentence, "illegal memory access");
}

// The oracle's own bits are NaN in its rows too, and would be no worse than any other.
TEST_F(CheckPlan, ANanAmongTheWeightsLeavesNothingToCompare) {
  const auto outcome = check({}, 40, 1, true);
  ASSERT_TRUE(outcome->not_comparable);
  EXPECT_THAT(*outcome->not_comparable,
              HasSubstr("its token is finite and the exact answer is NaN"));
}

TEST_F(CheckPlan, NoTokensIsRightToo) { EXPECT_FALSE(check({}, 0)->wrong); }

}  // namespace
}  // namespace moegauge
