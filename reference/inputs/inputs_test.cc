#include "reference/inputs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "reference/base/input_error.h"
#include "reference/base/thread_pool.h"
#include "reference/dtype.h"
#include "reference/schemes/scheme.h"

namespace moegauge {
namespace {

constexpr std::uint64_t kSeed = 3;
constexpr Distribution kAll[] = {Distribution::gaussian, Distribution::heavy_tail,
                                 Distribution::uniform, Distribution::degenerate,
                                 Distribution::exact};

Layer small_layer() {
  return {.experts = 6, .top_k = 2, .hidden_size = 300, .intermediate_size = 200};
}

std::shared_ptr<const Scheme> block_scheme() { return make_scheme("fp8_block"); }
std::shared_ptr<const Scheme> plain_scheme() { return make_scheme("bf16"); }

std::vector<float> whole(const ExpertSource& source, std::int64_t expert,
                         const MatrixShape& shape) {
  std::vector<float> out(static_cast<std::size_t>(shape.rows * shape.cols));
  source.original(expert, shape, 0, shape.rows, out);
  return out;
}

double deviation(std::span<const float> v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum / static_cast<double>(v.size()));
}

std::vector<float> decoded(const Layer& layer, const std::vector<std::uint16_t>& bits) {
  std::vector<float> out;
  for (const auto b : bits) out.push_back(to_float(layer.dtype, b));
  return out;
}

TEST(Distributions, NamesGoBothWays) {
  for (const auto d : kAll) EXPECT_EQ(distribution_from(to_string(d)), d);
  EXPECT_FALSE(distribution_from("gausian"));
}

TEST(GeneratedExperts, AnyRowRangeGivesTheSameBits) {
  const Layer layer = small_layer();
  for (const auto d : kAll) {
    const auto source = generated_experts(layer, block_scheme(), d, kSeed, 2);
    for (const auto role : {Role::w13, Role::w2}) {
      const auto shape = weight_shape(layer, role);
      const auto all = whole(*source, 1, shape);
      for (const auto& [begin, end] : {std::pair{0, 1}, {5, 7}, {127, 131}, {199, 200}}) {
        std::vector<float> part(static_cast<std::size_t>((end - begin) * shape.cols));
        source->original(1, shape, begin, end, part);
        EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + begin * shape.cols))
            << to_string(d);
      }
    }
  }
}

TEST(GeneratedExperts, SeveralThreadsMayAskAtOnce) {
  const Layer layer = small_layer();
  for (const auto d : kAll) {
    const auto source = generated_experts(layer, block_scheme(), d, kSeed, 1);
    const auto shape = weight_shape(layer, Role::w2);
    std::vector<std::vector<float>> made(12);
    ThreadPool(4).parallel_for(12, [&](std::int64_t i) {
      made[static_cast<std::size_t>(i)] = whole(*source, i % layer.experts, shape);
    });
    for (std::int64_t i = 0; i < 12; ++i) {
      EXPECT_EQ(made[static_cast<std::size_t>(i)], whole(*source, i % layer.experts, shape));
    }
  }
}

TEST(GeneratedExperts, WhatIsQuantisedIsTheOriginal) {
  const Layer layer = small_layer();
  const auto source = generated_experts(layer, block_scheme(), Distribution::gaussian, kSeed, 1);
  const auto shape = weight_shape(layer, Role::w13);
  const auto size = block_scheme()->weight_bytes(shape);
  std::vector<std::byte> values(size.values), scales(size.scales);
  std::vector<std::byte> expected_values(size.values), expected_scales(size.scales);
  source->quantized(3, {shape, values, scales, {}, {}});
  block_scheme()->quantize_weight(whole(*source, 3, shape),
                                  {shape, expected_values, expected_scales, {}, {}});
  EXPECT_EQ(values, expected_values);
  EXPECT_EQ(scales, expected_scales);
}

TEST(GeneratedExperts, RanksOfAnExpertMapSeeTheSameExperts) {
  Layer rank = small_layer();
  rank.expert_bias = true;
  Layer all = rank;
  rank.expert_map = {-1, -1, 1, 0, -1, 2};
  const auto here = generated_experts(rank, block_scheme(), Distribution::gaussian, kSeed, 2);
  const auto everywhere = generated_experts(all, block_scheme(), Distribution::gaussian, kSeed, 2);
  for (const auto role : {Role::w13, Role::w2}) {
    const auto shape = weight_shape(all, role);
    EXPECT_EQ(whole(*here, 0, shape), whole(*everywhere, 3, shape));
    EXPECT_EQ(whole(*here, 1, shape), whole(*everywhere, 2, shape));
    EXPECT_EQ(whole(*here, 2, shape), whole(*everywhere, 5, shape));
    EXPECT_EQ(here->bias(1, role), everywhere->bias(2, role));
    EXPECT_NE(whole(*here, 0, shape), whole(*here, 1, shape));
  }
}

TEST(GeneratedExperts, AnExpertMapWithGapsIsRefused) {
  Layer layer = small_layer();
  layer.expert_map = {-1, -1, 5, 0, -1, -1};
  EXPECT_THROW(generated_experts(layer, block_scheme(), Distribution::gaussian, kSeed), InputError);
}

TEST(GeneratedExperts, WhatCannotBeFilledIsRefused) {
  Layer layer = small_layer();
  EXPECT_THROW(generated_experts(layer, block_scheme(), Distribution::gaussian, kSeed, -1),
               InputError);
  layer.hidden_size = 0;
  for (const auto d : kAll) {
    EXPECT_THROW(generated_experts(layer, block_scheme(), d, kSeed), InputError);
    EXPECT_THROW(generate_inputs(layer, d, {}, 1, kSeed, 0, block_scheme().get()), InputError);
  }
}

TEST(GeneratedExperts, InterleavedIsTheSameLayerInAnotherOrder) {
  Layer layer = small_layer();
  layer.expert_bias = true;
  Layer interleaved = layer;
  interleaved.gate_up_order = GateUpOrder::interleaved;
  const auto a = generated_experts(layer, plain_scheme(), Distribution::gaussian, kSeed);
  const auto b = generated_experts(interleaved, plain_scheme(), Distribution::gaussian, kSeed);
  const auto wa = whole(*a, 0, weight_shape(layer, Role::w13));
  const auto wb = whole(*b, 0, weight_shape(interleaved, Role::w13));
  const auto ba = a->bias(0, Role::w13), bb = b->bias(0, Role::w13);
  const std::int64_t n = layer.intermediate_size, k = layer.hidden_size;
  for (std::int64_t i = 0; i < n; ++i) {
    EXPECT_TRUE(std::equal(&wa[static_cast<std::size_t>(i * k)],
                           &wa[static_cast<std::size_t>(i * k + k - 1)],
                           &wb[static_cast<std::size_t>(2 * i * k)]));
    EXPECT_TRUE(std::equal(&wa[static_cast<std::size_t>((n + i) * k)],
                           &wa[static_cast<std::size_t>((n + i) * k + k - 1)],
                           &wb[static_cast<std::size_t>((2 * i + 1) * k)]));
    EXPECT_EQ(ba[static_cast<std::size_t>(i)], bb[static_cast<std::size_t>(2 * i)]);
    EXPECT_EQ(ba[static_cast<std::size_t>(n + i)], bb[static_cast<std::size_t>(2 * i + 1)]);
  }
}

TEST(GeneratedExperts, DeviationIsOneOverTheRootOfTheContractedSize) {
  const Layer layer = {.experts = 1, .top_k = 1, .hidden_size = 2048, .intermediate_size = 768};
  for (const auto d : {Distribution::gaussian, Distribution::uniform, Distribution::heavy_tail}) {
    const auto source = generated_experts(layer, block_scheme(), d, kSeed);
    // Which columns are outliers is random, so the heavy tail's deviation is, too.
    const double tolerance = d == Distribution::heavy_tail ? 0.4 : 0.01;
    EXPECT_NEAR(deviation(whole(*source, 0, weight_shape(layer, Role::w13))) * std::sqrt(2048), 1,
                tolerance);
    EXPECT_NEAR(deviation(whole(*source, 0, weight_shape(layer, Role::w2))) * std::sqrt(768), 1,
                tolerance);
  }
}

TEST(GeneratedExperts, EveryValueIsOfTheLayersDtypeAndFinite) {
  for (const auto dtype : {Dtype::bf16, Dtype::fp16}) {
    Layer layer = small_layer();
    layer.dtype = dtype;
    for (const auto d : kAll) {
      const auto source = generated_experts(layer, block_scheme(), d, kSeed, 2);
      for (const auto role : {Role::w13, Role::w2}) {
        for (const float v : whole(*source, 0, weight_shape(layer, role))) {
          ASSERT_TRUE(std::isfinite(v));
          ASSERT_EQ(round_to(dtype, v), v) << to_string(d);
        }
      }
    }
  }
}

TEST(GeneratedExperts, SpreadMultipliesWholeUnitsByPowersOfTwo) {
  const Layer layer = {.experts = 2, .top_k = 1, .hidden_size = 1000, .intermediate_size = 300};
  const auto shape = weight_shape(layer, Role::w13);
  const auto flat =
      whole(*generated_experts(layer, block_scheme(), Distribution::gaussian, kSeed), 0, shape);
  const auto spread =
      whole(*generated_experts(layer, block_scheme(), Distribution::gaussian, kSeed, 2), 0, shape);
  std::set<float> seen;
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    for (std::int64_t c = 0; c < shape.cols; ++c) {
      const auto at = [&](const std::vector<float>& w, std::int64_t row, std::int64_t col) {
        return w[static_cast<std::size_t>(row * shape.cols + col)];
      };
      const std::int64_t r0 = r / 128 * 128, c0 = c / 128 * 128;  // the first element of the block
      const float factor = at(spread, r0, c0) / at(flat, r0, c0);
      seen.insert(factor);
      ASSERT_EQ(at(spread, r, c), at(flat, r, c) * factor);
    }
  }
  EXPECT_EQ(seen, (std::set<float>{0.25f, 0.5f, 1, 2, 4}));
}

TEST(GeneratedExperts, BiasOnlyWhereTheLayerHasIt) {
  Layer layer = small_layer();
  EXPECT_TRUE(generated_experts(layer, block_scheme(), Distribution::gaussian, kSeed)
                  ->bias(0, Role::w2)
                  .empty());
  layer.expert_bias = true;
  const auto source = generated_experts(layer, block_scheme(), Distribution::gaussian, kSeed);
  EXPECT_EQ(source->bias(0, Role::w13).size(), 400u);
  EXPECT_EQ(source->bias(0, Role::w2).size(), 300u);
  EXPECT_NE(source->bias(0, Role::w2), source->bias(1, Role::w2));
  EXPECT_NEAR(deviation(source->bias(0, Role::w13)), 0.25, 0.05);
}

TEST(HeavyTail, AboutOneColumnInAHundredIsAnOutlierForEveryToken) {
  const Layer layer = {.experts = 8, .top_k = 2, .hidden_size = 4096, .intermediate_size = 64};
  const auto inputs = generate_inputs(layer, Distribution::heavy_tail, {}, 256, kSeed, 0);
  const auto x = decoded(layer, inputs.x);
  std::vector<double> per_column(4096, 0);
  for (std::size_t i = 0; i < x.size(); ++i)
    per_column[i % 4096] += static_cast<double>(x[i]) * x[i];
  auto sorted = per_column;
  std::ranges::sort(sorted);
  const double median = sorted[2048];
  int outliers = 0;
  for (const double c : per_column) {
    const double ratio = std::sqrt(c / median);
    // Between the bulk and the outliers there is nothing.
    EXPECT_TRUE(ratio < 1.3 || (ratio > 20 * 0.8 && ratio < 50 * 1.2)) << ratio;
    outliers += ratio > 10;
  }
  EXPECT_NEAR(outliers, 41, 5 * std::sqrt(41));
  EXPECT_NEAR(deviation(x), 1, 0.3);
}

TEST(Degenerate, HoldsEveryKindOfGroupAndNoTokenOfDenormalsOnly) {
  const Layer layer = {.experts = 8, .top_k = 2, .hidden_size = 1024, .intermediate_size = 64};
  const auto scheme = block_scheme();
  const auto inputs =
      generate_inputs(layer, Distribution::degenerate, {}, 256, kSeed, 0, scheme.get());
  const auto x = decoded(layer, inputs.x);
  int zero = 0, denormal = 0, equal = 0, same_magnitude = 0, power_maximum = 0, zero_tokens = 0;
  for (std::size_t m = 0; m < 256; ++m) {
    double largest = 0;
    for (std::size_t g = 0; g < 8; ++g) {
      const std::span group(&x[m * 1024 + g * 128], 128);
      double amax = 0, amin = 1e30;
      for (const float v : group)
        amax = std::max<double>(amax, std::fabs(v)), amin = std::min<double>(amin, std::fabs(v));
      largest = std::max(largest, amax);
      zero += amax == 0;
      denormal += amax > 0 && amax < 0x1p-126;
      const bool all = std::ranges::all_of(group, [&](float v) { return v == group[0]; });
      equal += all && amax > 0;
      same_magnitude += !all && amin == amax;
      const double mantissa = std::ldexp(amax, -std::ilogb(amax > 0 ? amax : 1));
      power_maximum += amax > 1.9 && mantissa == 1.75;  // 448 = 1.75 * 2^8
    }
    zero_tokens += largest == 0;
    EXPECT_TRUE(largest == 0 || largest > 0.1);
  }
  EXPECT_GT(zero, 100);
  EXPECT_GT(denormal, 50);
  EXPECT_GT(equal, 50);
  EXPECT_GT(same_magnitude, 50);
  EXPECT_GT(power_maximum, 50);
  EXPECT_GT(zero_tokens, 4);
}

TEST(GenerateInputs, RowsAreOfUnitDeviationDistinctAndRepeatable) {
  const Layer layer = {.experts = 8, .top_k = 3, .hidden_size = 512, .intermediate_size = 64};
  for (const auto d : {Distribution::gaussian, Distribution::uniform}) {
    const auto a = generate_inputs(layer, d, {}, 256, kSeed, 0);
    EXPECT_NEAR(deviation(decoded(layer, a.x)), 1, 0.02);
    EXPECT_EQ(a.x, generate_inputs(layer, d, {}, 256, kSeed, 0).x);
    EXPECT_NE(a.x, generate_inputs(layer, d, {}, 256, kSeed, 1).x);
    std::set<std::vector<std::uint16_t>> rows;
    for (std::size_t m = 0; m < 256; ++m)
      rows.insert(
          {a.x.begin() + static_cast<long>(m) * 512, a.x.begin() + static_cast<long>(m + 1) * 512});
    EXPECT_EQ(rows.size(), 256u);
  }
}

TEST(GenerateInputs, FewerTokensAreAPrefix) {
  const Layer layer = small_layer();
  const auto many = generate_inputs(layer, Distribution::gaussian, {}, 20, kSeed, 0);
  const auto few = generate_inputs(layer, Distribution::gaussian, {}, 7, kSeed, 0);
  EXPECT_TRUE(std::equal(few.x.begin(), few.x.end(), many.x.begin()));
  EXPECT_TRUE(std::equal(few.topk_ids.begin(), few.topk_ids.end(), many.topk_ids.begin()));
}

TEST(GenerateInputs, RouterWeightsArePositiveAndSumToOne) {
  Layer layer = small_layer();
  layer.top_k = 4;
  for (const auto d : {Distribution::gaussian, Distribution::exact}) {
    const auto in = generate_inputs(layer, d, {}, 500, kSeed, 0, block_scheme().get());
    ASSERT_EQ(in.topk_weights.size(), 2000u);
    for (std::size_t m = 0; m < 500; ++m) {
      float sum = 0;
      for (std::size_t t = 0; t < 4; ++t) {
        EXPECT_GT(in.topk_weights[4 * m + t], 0);
        sum += in.topk_weights[4 * m + t];
      }
      EXPECT_NEAR(sum, 1, 1e-6);
    }
  }
  layer.top_k = 1;
  std::set<float> different;
  for (const float w :
       generate_inputs(layer, Distribution::gaussian, {}, 100, kSeed, 0).topk_weights) {
    EXPECT_GT(w, 0);
    EXPECT_LT(w, 1);
    different.insert(w);
  }
  EXPECT_GT(different.size(), 90u);
}

TEST(GenerateInputs, NoTokensGiveEmptyInputs) {
  const auto in = generate_inputs(small_layer(), Distribution::gaussian, {}, 0, kSeed, 0);
  EXPECT_TRUE(in.x.empty() && in.topk_ids.empty() && in.topk_weights.empty());
}

TEST(Pool, EveryRowAppearsEquallyOftenInRandomOrder) {
  const Layer layer = small_layer();
  const auto pool = generate_inputs(layer, Distribution::gaussian, {}, 256, kSeed, 0);
  for (const std::int64_t tokens : {256, 1000, 8192}) {
    const auto repeated = repeat_from_pool(pool, layer, tokens, kSeed);
    ASSERT_EQ(static_cast<std::int64_t>(repeated.index.size()), tokens);
    std::vector<int> n(256, 0);
    for (const auto row : repeated.index) ++n.at(static_cast<std::size_t>(row));
    const auto [low, high] = std::ranges::minmax(n);
    EXPECT_GE(low, 1);
    EXPECT_LE(high - low, 1);
    EXPECT_FALSE(std::ranges::is_sorted(repeated.index));
  }
}

TEST(Pool, RowsAreCopiedWithTheirIdsAndWeights) {
  const Layer layer = small_layer();
  const auto pool = generate_inputs(layer, Distribution::gaussian, {}, 5, kSeed, 0);
  const auto r = repeat_from_pool(pool, layer, 12, kSeed);
  for (std::size_t m = 0; m < 12; ++m) {
    const auto from = static_cast<std::size_t>(r.index[m]);
    EXPECT_TRUE(std::equal(&pool.x[from * 300], &pool.x[from * 300 + 299], &r.inputs.x[m * 300]));
    EXPECT_EQ(pool.topk_ids[from * 2 + 1], r.inputs.topk_ids[m * 2 + 1]);
    EXPECT_EQ(pool.topk_weights[from * 2], r.inputs.topk_weights[m * 2]);
  }
}

TEST(Pool, FewerTokensThanRowsAreDistinctRows) {
  const Layer layer = small_layer();
  const auto pool = generate_inputs(layer, Distribution::gaussian, {}, 64, kSeed, 0);
  const auto r = repeat_from_pool(pool, layer, 20, kSeed);
  EXPECT_EQ(std::set<std::int32_t>(r.index.begin(), r.index.end()).size(), 20u);
  EXPECT_THROW(repeat_from_pool({}, layer, 1, kSeed), InputError);
  EXPECT_TRUE(repeat_from_pool({}, layer, 0, kSeed).index.empty());
}

}  // namespace
}  // namespace moegauge
