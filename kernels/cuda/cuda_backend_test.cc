// The kernels on a device, through the backend's own face: every kind of tile of every scheme
// against the fp64 oracle, and what a caller may count on besides. Skipped where there is no
// device.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "kernels/backend.h"
#include "reference/dtype.h"
#include "reference/error.h"
#include "reference/inputs.h"
#include "reference/oracle.h"

namespace moegauge {

const Backend& cuda_backend();

namespace {

using Output = std::vector<std::uint16_t>;

constexpr std::uint16_t bf16_nan = 0x7FC0, bf16_infinity = 0x7F80;
bool is_nan(std::uint16_t bits) { return (bits & 0x7FFF) > 0x7F80; }
bool is_finite(std::uint16_t bits) { return (bits & 0x7F80) != 0x7F80; }

std::vector<std::int32_t> first_local(std::size_t experts, std::int32_t local) {
  std::vector<std::int32_t> map(experts, -1);
  for (std::int32_t e = 0; e < local; ++e) map[static_cast<std::size_t>(e)] = e;
  return map;
}

struct LayerCase {
  const char* name;
  const char* scheme;
  Layer layer;
  std::vector<Config> configs;
  friend std::ostream& operator<<(std::ostream& out, const LayerCase& c) { return out << c.name; }
};

Config split(std::int64_t tile, std::int64_t dealt) {
  return {{{"BLOCK_SIZE_M", tile},
           {"SPLIT_K", 1},
           {"SWAP_AB", 1},
           {"CLUSTER_SIZE", 1},
           {"DEALT", dealt}}};
}
Config whole(std::int64_t tile) {
  return {
      {{"BLOCK_SIZE_M", tile}, {"SPLIT_K", 0}, {"SWAP_AB", 1}, {"CLUSTER_SIZE", 1}, {"DEALT", 1}}};
}
Config with(Config config, const char* key, std::int64_t value) {
  config.values[key] = value;
  return config;
}
Config paired(std::int64_t tile) { return with(whole(tile), "CLUSTER_SIZE", 2); }
Config token_rows(std::int64_t cluster) {
  return {{{"BLOCK_SIZE_M", 128},
           {"SPLIT_K", 0},
           {"SWAP_AB", 0},
           {"CLUSTER_SIZE", cluster},
           {"DEALT", 1}}};
}
Layer in_fp16(Layer layer) {
  layer.dtype = Dtype::fp16;
  return layer;
}

// Widths that end inside a tile of 128 or 256 and inside a step of K, fewer local experts than
// global ones, and widths of whole tiles for the kinds that need them.
std::vector<LayerCase> layer_cases() {
  Layer ragged = {.experts = 8, .top_k = 3, .hidden_size = 336, .intermediate_size = 192};
  ragged.expert_map = first_local(8, 5);
  const Layer even = {.experts = 8, .top_k = 2, .hidden_size = 496, .intermediate_size = 256};
  Layer scaled_first = {.experts = 6, .top_k = 1, .hidden_size = 352, .intermediate_size = 192};
  scaled_first.router_weight_on_input = true;
  Layer scaled_even = {.experts = 4, .top_k = 1, .hidden_size = 496, .intermediate_size = 256};
  scaled_even.router_weight_on_input = true;
  Layer many = {.experts = 64, .top_k = 8, .hidden_size = 512, .intermediate_size = 128};
  // Up's blocks of scales begin at row 80 of w13, inside a warp's rows of h.
  const Layer fine = {.experts = 8, .top_k = 2, .hidden_size = 320, .intermediate_size = 80};
  Layer biased = even;
  biased.activation.kind = ActivationKind::swiglu_clamped;
  biased.gate_up_order = GateUpOrder::interleaved;
  biased.expert_bias = true;
  Layer gelu = ragged;
  gelu.activation.kind = ActivationKind::gelu_and_mul;
  gelu.expert_bias = true;
  Layer gelu_tanh = even;
  gelu_tanh.activation.kind = ActivationKind::gelu_tanh_and_mul;
  gelu_tanh.expert_bias = true;
  gelu_tanh.adds_w2_bias = false;
  // Stages that fit beside any tile of any group.
  const auto few = [](const Config& c) { return with(c, "num_stages", 3); };
  const auto fp8 = [](const Config& c) { return with(c, "PROMOTE", 1); };
  const auto reduced = [](const Config& c) { return with(c, "PROMOTE", 0); };
  return {
      {"block_ragged", "fp8_block", ragged, {{}, split(16, 2), whole(64), whole(96)}},
      {"block_even",
       "fp8_block",
       even,
       {{}, split(48, 2), whole(80), paired(80), token_rows(1), token_rows(2)}},
      {"block_many", "fp8_block", many, {{}, split(8, 2), token_rows(1)}},
      {"ptpc_ragged", "fp8_ptpc", ragged, {{}, fp8(split(32, 2)), reduced(token_rows(1))}},
      {"ptpc_on_input",
       "fp8_ptpc",
       scaled_first,
       {{}, fp8(whole(80)), reduced(whole(96)), fp8(token_rows(1))}},
      {"ptpc_even",
       "fp8_ptpc",
       scaled_even,
       {reduced(split(64, 1000)), fp8(paired(80)), fp8(paired(96)), reduced(paired(144)),
        fp8(token_rows(2)), reduced(token_rows(2))}},
      {"bf16_ragged",
       "bf16",
       ragged,
       {{}, split(24, 1), split(64, 1000), with(whole(192), "num_stages", 3)}},
      {"bf16_even", "bf16", even, {{}, whole(128), paired(144), token_rows(1), token_rows(2)}},
      {"bf16_on_input", "bf16", scaled_first, {{}, whole(96)}},
      {"block_fine", "fp8_block", fine, {{}, split(48, 2), whole(64)}},
      {"block_biased", "fp8_block", biased, {{}, split(16, 2), whole(80)}},
      {"block_gelu_tanh", "fp8_block", gelu_tanh, {{}, token_rows(1), token_rows(2)}},
      {"ptpc_gelu", "fp8_ptpc", gelu, {{}, fp8(split(32, 2)), reduced(token_rows(1))}},
      {"bf16_biased", "bf16", biased, {{}, whole(144), token_rows(2)}},
      {"tensor_ragged", "fp8_tensor", ragged, {{}, fp8(split(16, 2)), reduced(whole(96))}},
      {"tensor_on_input",
       "fp8_tensor",
       scaled_even,
       {{}, fp8(token_rows(1)), reduced(split(8, 2))}},
      {"static_ragged", "fp8_tensor_static", ragged, {{}, reduced(token_rows(1))}},
      {"mx_ragged", "mxfp8", ragged, {{}, split(16, 2), split(64, 1000), whole(48)}},
      {"mx_fine", "mxfp8_floor", fine, {{}, split(8, 2), whole(64)}},
      {"mx_biased", "mxfp8", biased, {{}, split(32, 2)}},
      {"mx_on_input", "mxfp8", scaled_first, {{}, whole(64)}},
      {"int8_ragged", "w8a8_int8", ragged, {{}, split(16, 2), whole(96), token_rows(1)}},
      {"int8_even",
       "w8a8_int8",
       scaled_even,
       {split(64, 1000), whole(144), paired(80), token_rows(2)}},
      {"int8_gelu", "w8a8_int8", gelu, {{}, whole(64)}},
      {"fp16_ragged", "fp16", in_fp16(ragged), {{}, split(24, 1), whole(144), token_rows(1)}},
      {"fp16_biased", "fp16", in_fp16(biased), {{}, paired(144), token_rows(2)}},
      {"fp16_block", "fp8_block", in_fp16(even), {{}, split(16, 2), token_rows(1)}},
      {"fp16_ptpc",
       "fp8_ptpc",
       in_fp16(scaled_even),
       {{}, fp8(paired(80)), reduced(token_rows(2))}},
      {"fp16_int8", "w8a8_int8", in_fp16(ragged), {{}, token_rows(1)}},
      {"fp16_mx", "mxfp8", in_fp16(ragged), {{}, split(32, 2)}},
      {"fp16_w4", "w4a16_g32_zp", in_fp16(ragged), {{}, few(split(48, 1)), few(whole(80))}},
      {"fp16_w8", "w8a16_g64_zp", in_fp16(ragged), {{}, few(split(48, 1)), few(whole(80))}},
      {"mxfp4", "mxfp4", ragged, {{}, few(split(24, 1000)), few(whole(96))}},
      {"mxfp4_biased", "mxfp4", biased, {{}, few(split(8, 2)), few(whole(64))}},
      {"fp16_mxfp4", "mxfp4", in_fp16(ragged), {{}, few(split(48, 1)), few(whole(80))}},
      {"w4", "w4a16_g128", ragged, {{}, few(split(24, 1000)), few(whole(96))}},
      {"w4_ordered", "w4a16_g32_zp_actorder", ragged, {{}, few(split(48, 1)), few(whole(80))}},
      {"w4_fine", "w4a16_g64_zp", fine, {{}, few(split(16, 1))}},
      {"w8", "w8a16_g64_zp", ragged, {{}, few(split(48, 1)), few(whole(80))}},
  };
}

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
    const Availability here = cuda_backend().availability();
    if (!here.present) GTEST_SKIP() << here.detail;
    problem_ = problem_of(GetParam());
    experts_ = generated_experts(layer(), problem_.scheme, Distribution::gaussian, 5, 2);
    auto loaded = cuda_backend().load(problem_, *experts_, 2);
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
    const ErrorLimits limits = problem_.scheme->error_limits(layer().dtype, reduced);
    EXPECT_EQ(error.non_finite, 0);
    EXPECT_LE(error.relative_l2, limits.relative_l2);
    EXPECT_LE(error.worst_token, limits.worst_token) << "row " << error.worst_token_row;
  }

  Problem problem_;
  std::unique_ptr<ExpertSource> experts_;
  std::unique_ptr<LoadedLayer> loaded_;
};

INSTANTIATE_TEST_SUITE_P(Cuda, OnDevice, testing::ValuesIn(layer_cases()),
                         [](const auto& param) { return std::string(param.param.name); });

// The same answer with and without a device: what is refused then is the device that is not here.
TEST(Refusals, EverySchemeIsServedInBothDtypesButForFnuz) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16}) {
    const Layer layer = {
        .experts = 8, .top_k = 2, .hidden_size = 512, .intermediate_size = 256, .dtype = dtype};
    for (const char* name :
         {"fp8_block", "fp8_block_frommx", "fp8_ptpc", "fp8_tensor", "fp8_tensor_static", "mxfp8",
          "mxfp8_floor", "mxfp4", "w4a16_g32_zp", "w8a16_g64_actorder", "w8a8_int8"}) {
      const auto refusal = cuda_backend().refuses({layer, make_scheme(name), 0});
      EXPECT_TRUE(!refusal || refusal->reason == RefusalReason::device_absent) << name;
    }
    for (const char* name : {"fp8_block_fnuz", "fp8_ptpc_fnuz224", "mxfp8_fnuz"}) {
      const auto refusal = cuda_backend().refuses({layer, make_scheme(name), 0});
      ASSERT_TRUE(refusal.has_value()) << name;
      EXPECT_EQ(refusal->reason, RefusalReason::scheme) << name;
      EXPECT_NE(refusal->sentence.find("240 has no code"), std::string::npos) << name;
    }
  }
}

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
}  // namespace moegauge
