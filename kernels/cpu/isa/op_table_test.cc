// Single ops of every level that this CPU supports: right against plain code, and the same bits as
// the portable one's whatever the length of a row.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cpu/isa_level.h"
#include "reference/formats/bf16.h"
#include "reference/formats/fp8.h"
#include "reference/formats/int8.h"

namespace moegauge::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class OpTables : public testing::TestWithParam<IsaLevel> {
 protected:
  void SetUp() override {
    if (!supported(GetParam())) GTEST_SKIP() << "this CPU lacks " << to_string(GetParam());
  }
  const OpTable& table() const { return op_table(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Levels, OpTables, testing::ValuesIn(all_isa_levels()),
                         [](const auto& level) { return std::string(to_string(level.param)); });

std::vector<std::uint16_t> random_bf16(std::size_t n, std::uint64_t seed, double deviation = 1) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal(0, deviation);
  std::vector<std::uint16_t> values(n);
  for (auto& v : values) v = float_to_bf16(static_cast<float>(normal(engine)));
  return values;
}

const std::vector<std::int64_t> kLengths = {1, 3, 4, 15, 16, 17, 31, 100};

TEST_P(OpTables, SumRowsInTheOrderOfTheirSlots) {
  for (const std::int64_t n : kLengths) {
    const auto rows = random_bf16(static_cast<std::size_t>(3 * n), 1);
    const std::vector<float> weights = {0.3f, 0.2f, 0.1f};
    std::vector<std::uint16_t> y(static_cast<std::size_t>(n) + 1, 0xAAAA);
    table().weighted_sum(
        {.rows = rows.data(), .weights = weights.data(), .count = 3, .columns = n, .y = y.data()});
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::int64_t t = 0; t < 3; ++t) {
        sum += bf16_to_float(rows[static_cast<std::size_t>(t * n + j)]) *
               weights[static_cast<std::size_t>(t)];
      }
      ASSERT_EQ(y[static_cast<std::size_t>(j)], float_to_bf16(sum)) << n << " " << j;
    }
    EXPECT_EQ(y.back(), 0xAAAA) << "nothing beyond the row";
  }
}

TEST_P(OpTables, ActivateBothOrdersAlike) {
  for (const std::int64_t n : kLengths) {
    const auto apart = random_bf16(static_cast<std::size_t>(2 * n), 2);
    std::vector<std::uint16_t> in_turn;
    for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j) {
      in_turn.push_back(apart[j]);
      in_turn.push_back(apart[static_cast<std::size_t>(n) + j]);
    }
    std::vector<std::uint16_t> a(static_cast<std::size_t>(n)), b(a.size()), portable(a.size());
    GateUpArgs args = {.gate_up = apart.data(), .n = n, .out = a.data()};
    table().gate_up(args);
    args.out = portable.data();
    op_table(IsaLevel::portable).gate_up(args);
    args.gate_up = in_turn.data();
    args.interleaved = true;
    args.out = b.data();
    table().gate_up(args);
    EXPECT_EQ(a, b);
    EXPECT_EQ(a, portable);
  }
}

TEST_P(OpTables, QuantizeAsTheFormatsSay) {
  auto x = random_bf16(100, 3, 100);
  x[5] = 0x7FC0;  // NaN
  x[6] = 0x7F80;  // infinity
  x[7] = 0xFF80;
  const float scale = 0.37f;
  const auto run = [&](ByteFormat format, float maximum) {
    std::vector<std::uint8_t> q(x.size());
    table().quantize({.x = x.data(),
                      .n = std::ssize(x),
                      .scale = scale,
                      .format = format,
                      .maximum = maximum,
                      .q = q.data()});
    return q;
  };
  const auto ocp = run(ByteFormat::e4m3fn, 448), fnuz = run(ByteFormat::e4m3fnuz, 224),
             int8 = run(ByteFormat::int8, 127);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float quotient = bf16_to_float(x[i]) / scale;
    EXPECT_EQ(ocp[i], float_to_e4m3fn(quotient)) << quotient;
    EXPECT_EQ(fnuz[i], float_to_e4m3fnuz(quotient, 224)) << quotient;
    EXPECT_EQ(int8[i], static_cast<std::uint8_t>(float_to_int8(quotient))) << quotient;
  }
}

TEST_P(OpTables, FindTheLargestFiniteMagnitude) {
  auto x = random_bf16(37, 4);
  x[3] = 0x7FC0;
  x[36] = 0xFF80;
  x[20] = 0xC2F7;  // -123.5
  EXPECT_EQ(table().finite_amax(NarrowType::bf16, x.data(), 37), 123.5f);
  EXPECT_EQ(table().finite_amax(NarrowType::bf16, x.data() + 36, 1), 0);
  const std::vector<std::uint16_t> half = {0x3C00, 0xC500, 0x7C00};  // 1, -5, infinity
  EXPECT_EQ(table().finite_amax(NarrowType::fp16, half.data(), 3), 5);
}

struct Routed {
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
  friend bool operator==(const Routed&, const Routed&) = default;
};
Routed route(const OpTable& table, RouteArgs args, const std::vector<float>& logits) {
  args.logits = logits.data();
  args.experts = std::ssize(logits);
  std::vector<float> scratch(
      static_cast<std::size_t>(route_scratch(args.experts, args.groups, args.top_k)),
      std::nanf(""));
  args.scratch = scratch.data();
  Routed out = {std::vector<std::int32_t>(static_cast<std::size_t>(args.top_k)),
                std::vector<float>(static_cast<std::size_t>(args.top_k))};
  args.ids = out.ids.data();
  args.weights = out.weights.data();
  table.route(args);
  return out;
}

TEST_P(OpTables, RouteTiesToTheLowerIdWhereverTheyStand) {
  std::vector<float> logits(40, 0.0f);
  logits[17] = logits[3] = logits[39] = 2;
  const Routed out = route(table(), {.top_k = 5}, logits);
  EXPECT_EQ(out.ids, (std::vector<std::int32_t>{3, 17, 39, 0, 1}));
  // e^2 / (3 e^2 + 37) and 1 / (3 e^2 + 37).
  EXPECT_NEAR(out.weights[0], 0.12488, 1e-5);
  EXPECT_NEAR(out.weights[4], 0.016901, 1e-6);
}

TEST_P(OpTables, RouteWhereNothingIsLeft) {
  const std::vector<float> nothing(20, -kInfinity);
  for (const RouterWeight weight : {RouterWeight::softmax_of_all, RouterWeight::softmax_of_chosen,
                                    RouterWeight::sigmoid, RouterWeight::sigmoid_shares}) {
    for (const SelectionScore score : {SelectionScore::logit, SelectionScore::sigmoid}) {
      const Routed out = route(
          table(), {.top_k = 3, .groups = 4, .top_groups = 2, .score = score, .weight = weight},
          nothing);
      if (score == SelectionScore::logit) {
        EXPECT_EQ(out.ids, (std::vector<std::int32_t>{0, 1, 2}));
      }
      EXPECT_EQ(out.weights, (std::vector<float>{0, 0, 0}));
    }
  }
}

TEST_P(OpTables, RouteTheSameAsThePortableLevel) {
  std::mt19937_64 engine(9);
  std::normal_distribution<float> normal(0, 2);
  for (const std::int64_t experts : {8, 24, 128, 257}) {
    std::vector<float> logits(static_cast<std::size_t>(experts)), bias(logits.size());
    for (float& v : logits) v = normal(engine);
    for (float& v : bias) v = normal(engine) * 0.1f;
    logits[2] = std::nanf("");
    const std::int64_t groups = experts % 8 == 0 ? 8 : 1;
    const RouteArgs args = {.bias = bias.data(),
                            .top_k = 4,
                            .groups = groups,
                            .top_groups = groups > 1 ? 4 : 1,
                            .score = SelectionScore::sigmoid,
                            .weight = RouterWeight::sigmoid_shares,
                            .scaling_factor = 2.5f};
    EXPECT_EQ(route(table(), args, logits), route(op_table(IsaLevel::portable), args, logits));
  }
}

}  // namespace
}  // namespace moegauge::cpu
