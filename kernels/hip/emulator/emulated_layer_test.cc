// The AMD kernels on the emulator, through the backend's own face, against the fp64 oracle under
// the limits that ship: every scheme, every tile, on every architecture.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <ostream>

#include "kernels/hip/emulator/emulated_backends.h"
#include "kernels/hip/emulator/matrix.h"
#include "kernels/hip/layer_format.h"
#include "kernels/hip/tile_config.h"
#include "reference/dtype.h"
#include "reference/error.h"
#include "reference/inputs.h"
#include "reference/oracle.h"

namespace moegauge {
namespace {

using Output = std::vector<std::uint16_t>;

bool is_nan(Dtype dtype, std::uint16_t bits) { return std::isnan(to_float(dtype, bits)); }

struct LayerCase {
  std::string architecture, scheme;
  friend std::ostream& operator<<(std::ostream& out, const LayerCase& c) {
    return out << c.architecture << " " << c.scheme;
  }
};

std::vector<LayerCase> layer_cases() {
  std::vector<LayerCase> cases;
  for (const char* architecture : {"gfx942", "gfx950", "gfx1201"}) {
    for (const char* scheme : {"bf16", "fp16", "fp8_block", "fp8_ptpc", "fp8_tensor",
                               "fp8_tensor_static", "w8a8_int8"}) {
      cases.push_back({architecture, scheme});
    }
  }
  for (const char* scheme : {"fp8_block_fnuz", "fp8_ptpc_fnuz224", "fp8_tensor_fnuz"})
    cases.push_back({"gfx942", scheme});
  return cases;
}

std::shared_ptr<const Scheme> scheme_named(const std::string& name) { return make_scheme(name); }

// Widths that end inside a tile and inside a step, and fewer local experts than global ones.
Layer ragged_layer(const Scheme& scheme) {
  Layer layer = {.experts = 6, .top_k = 3, .hidden_size = 296, .intermediate_size = 176};
  layer.dtype = scheme.traits().only.value_or(Dtype::bf16);
  layer.expert_map = {0, -1, 1, 2, 3, -1};
  return layer;
}

class Emulated : public testing::TestWithParam<LayerCase> {
 protected:
  // Runs a layer and compares it with the oracle.
  struct Loaded {
    Problem problem;
    std::unique_ptr<const Backend> backend = {};
    std::unique_ptr<ExpertSource> experts = {};
    std::unique_ptr<LoadedLayer> layer = {};
  };

  Loaded load(const Layer& layer, std::uint64_t seed = 0, int unit_spread = 2) {
    Loaded l{.problem = {layer, scheme_named(GetParam().scheme), 0}};
    l.backend = make_emulated_backend(GetParam().architecture, seed);
    l.experts = generated_experts(layer, l.problem.scheme, Distribution::gaussian, 5, unit_spread);
    auto loaded = l.backend->load(l.problem, *l.experts, 2);
    EXPECT_TRUE(loaded.has_value()) << loaded.error().sentence;
    if (loaded) l.layer = std::move(*loaded);
    return l;
  }
  Layer ragged() const { return ragged_layer(*scheme_named(GetParam().scheme)); }
  const hip::Architecture& architecture() const {
    return *hip::find_architecture(GetParam().architecture);
  }

  static std::unique_ptr<Plan> plan(Loaded& l, std::int64_t tokens, const Config& config = {}) {
    auto made = l.layer->plan(tokens, config, 1);
    EXPECT_TRUE(made.has_value()) << made.error().sentence;
    return made ? std::move(*made) : nullptr;
  }
  static OwnedInputs inputs(const Loaded& l, std::int64_t tokens, std::uint64_t stream = 0) {
    return generate_inputs(l.problem.layer, Distribution::gaussian, {}, tokens, 5, stream,
                           l.problem.scheme.get());
  }
  // One poisoned run.
  static Output run(Plan& plan, const OwnedInputs& in, const RunRequest& request = {}) {
    expect_none(plan.set_inputs(0, in.view()));
    expect_none(plan.poison());
    const auto seconds = plan.run(request);
    EXPECT_TRUE(seconds.has_value()) << seconds.error().sentence;
    Output y(in.x.size());
    expect_none(plan.fetch(0, y));
    return y;
  }
  static void expect_none(const std::optional<Fault>& fault) {
    EXPECT_FALSE(fault.has_value()) << (fault ? fault->sentence : "");
  }
  static ErrorMetrics error_of(const Loaded& l, const Output& y, const OwnedInputs& in,
                               const Numerics& numerics) {
    const Layer& layer = l.problem.layer;
    const Truth truth = compute_truth(layer, *l.problem.scheme, numerics, *l.experts, in.view(), 1);
    std::vector<double> values;
    for (const std::uint16_t bits : y)
      values.push_back(static_cast<double>(to_float(layer.dtype, bits)));
    return measure_error(values, truth.emulated, truth.magnitude, in.tokens, layer.hidden_size, {},
                         layer.dtype);
  }
  static void expect_close(const Loaded& l, const Output& y, const OwnedInputs& in,
                           const Numerics& numerics) {
    const ErrorMetrics error = error_of(l, y, in, numerics);
    const ErrorLimits limits =
        l.problem.scheme->error_limits(l.problem.layer.dtype, false).over(in.tokens);
    EXPECT_EQ(error.non_finite, 0);
    EXPECT_LE(error.relative_l2, limits.relative_l2);
    EXPECT_LE(error.worst_token, limits.worst_token) << "row " << error.worst_token_row;
  }
  std::vector<Config> every_tile(const Problem& problem) const {
    const auto format = hip::format_of(problem, architecture());
    std::vector<Config> configs;
    for (const hip::Tile& tile : hip::tiles(architecture(), *format))
      configs.push_back(hip::to_config(tile, *format));
    return configs;
  }
};

INSTANTIATE_TEST_SUITE_P(Hip, Emulated, testing::ValuesIn(layer_cases()), [](const auto& param) {
  return param.param.architecture + "_" + param.param.scheme;
});

TEST_P(Emulated, EveryTileAgreesWithTheOracle) {
  Loaded l = load(ragged());
  for (const std::int64_t tokens : {1, 35}) {  // 35: two blocks group them
    const OwnedInputs in = inputs(l, tokens);
    for (const Config& config : every_tile(l.problem)) {
      SCOPED_TRACE(testing::Message()
                   << tokens << " tokens, tile of " << config.values.at("BLOCK_SIZE_M")
                   << ", instructions of " << config.values.at("matrix_instr_nonkdim"));
      const auto p = plan(l, tokens, config);
      ASSERT_NE(p, nullptr);
      expect_close(l, run(*p, in), in, p->identity().numerics);
    }
  }
}

// A block's waves each see a part of a row: what they find of it must come together.
TEST_P(Emulated, RowsMayBeWiderThanAWave) {
  Layer layer = ragged();
  layer.hidden_size = 1064;
  layer.intermediate_size = 624;
  Loaded l = load(layer);
  const OwnedInputs in = inputs(l, 2);
  const auto p = plan(l, 2);
  ASSERT_NE(p, nullptr);
  expect_close(l, run(*p, in), in, p->identity().numerics);
}

// More rows of an expert than a tile has.
TEST_P(Emulated, OneExpertMayTakeEveryToken) {
  Loaded l = load(ragged());
  constexpr std::int64_t tokens = 70;
  OwnedInputs in = inputs(l, tokens);
  for (std::size_t i = 0; i < in.topk_ids.size(); ++i) in.topk_ids[i] = i % 3 == 0 ? 2 : -1;
  for (const Config& config : every_tile(l.problem)) {
    const auto p = plan(l, tokens, config);
    ASSERT_NE(p, nullptr);
    expect_close(l, run(*p, in), in, p->identity().numerics);
  }
}

TEST_P(Emulated, NoTokensAreASuccess) {
  Loaded l = load(ragged());
  const auto p = plan(l, 0);
  ASSERT_NE(p, nullptr);
  EXPECT_TRUE(run(*p, inputs(l, 0), {.calls = 3}).empty());
}

TEST_P(Emulated, DroppedPairsAndOtherRanksExpertsContributeNothing) {
  Loaded l = load(ragged());
  constexpr std::int64_t tokens = 12, dropped = 4;
  const auto p = plan(l, tokens);
  OwnedInputs in = inputs(l, tokens);
  for (std::size_t i = 0; i < in.topk_ids.size(); i += 3) in.topk_ids[i] = -1;
  for (std::size_t t = 0; t < 3; ++t) in.topk_ids[dropped * 3 + t] = t == 0 ? -1 : 5;
  const Output y = run(*p, in);
  expect_close(l, y, in, p->identity().numerics);
  const auto k = static_cast<std::ptrdiff_t>(l.problem.layer.hidden_size);
  EXPECT_TRUE(std::all_of(y.begin() + dropped * k, y.begin() + (dropped + 1) * k,
                          [](std::uint16_t bits) { return (bits & 0x7FFF) == 0; }));
  std::ranges::fill(in.topk_ids, -1);
  const Output nothing = run(*p, in);
  EXPECT_TRUE(
      std::ranges::all_of(nothing, [](std::uint16_t bits) { return (bits & 0x7FFF) == 0; }));
}

// A scale of the whole tensor is everybody's, so that there other tokens may change with it.
TEST_P(Emulated, ANaNInATokenStaysInThatToken) {
  Loaded l = load(ragged());
  const Dtype dtype = l.problem.layer.dtype;
  constexpr std::int64_t tokens = 9, bad = 4;
  OwnedInputs in = inputs(l, tokens);
  for (std::size_t t = 0; t < 3; ++t) in.topk_ids[bad * 3 + t] = static_cast<int>(t + 2);
  const auto p = plan(l, tokens);
  const std::int64_t k = l.problem.layer.hidden_size;
  in.x[bad * static_cast<std::size_t>(k) + 100] = 0;  // not the largest
  const Output clean = run(*p, in);
  in.x[bad * static_cast<std::size_t>(k) + 100] = dtype == Dtype::bf16 ? 0x7FC0 : 0x7E00;
  const Output y = run(*p, in);
  for (std::int64_t i = 0; i < tokens * k; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (i / k == bad)
      ASSERT_TRUE(is_nan(dtype, y[at]));
    else if (l.problem.scheme->traits().activation.unit.rows != 0)
      ASSERT_EQ(y[at], clean[at]);
    else
      ASSERT_FALSE(is_nan(dtype, y[at]));
  }
}

TEST_P(Emulated, ResultsDoNotDependOnTheOrderOfThreadsAndBlocks) {
  constexpr std::int64_t tokens = 34;  // two blocks group them
  Loaded own = load(ragged());
  const OwnedInputs in = inputs(own, tokens);
  const Output expected = run(*plan(own, tokens), in);
  Loaded shuffled = load(ragged(), 1);
  EXPECT_EQ(run(*plan(shuffled, tokens), in), expected);
}

TEST_P(Emulated, EveryActivationWithBiasesInEitherOrderAgreesWithTheOracle) {
  const std::pair<ActivationKind, GateUpOrder> kinds[] = {
      {ActivationKind::silu_and_mul, GateUpOrder::interleaved},
      {ActivationKind::gelu_and_mul, GateUpOrder::concatenated},
      {ActivationKind::gelu_tanh_and_mul, GateUpOrder::interleaved},
      {ActivationKind::swiglu_clamped, GateUpOrder::concatenated}};
  for (const auto& [kind, order] : kinds) {
    SCOPED_TRACE(testing::Message() << "activation " << static_cast<int>(kind));
    Layer layer = ragged();
    layer.activation.kind = kind;
    layer.gate_up_order = order;
    layer.expert_bias = true;
    Loaded l = load(layer);
    const OwnedInputs in = inputs(l, 5);
    const auto p = plan(l, 5);
    ASSERT_NE(p, nullptr);
    expect_close(l, run(*p, in), in, p->identity().numerics);
  }
}

TEST_P(Emulated, TheRouterWeightMayMultiplyTheInput) {
  Layer layer = ragged();
  layer.top_k = 1;
  layer.router_weight_on_input = true;
  Loaded l = load(layer);
  const OwnedInputs in = inputs(l, 7);
  for (const Config& config : every_tile(l.problem)) {
    const auto p = plan(l, 7, config);
    ASSERT_NE(p, nullptr);
    expect_close(l, run(*p, in), in, p->identity().numerics);
  }
}

// The instructions with the rows of their products dealt otherwise: no permutation of these passes.
TEST_P(Emulated, AWrongLaneMapIsFarBeyondTheLimits) {
  std::vector<emulator::MatrixInstruction> wrong;
  for (int i = 0; i <= static_cast<int>(moe::gpu::Instruction::Wmma16x16x16F16); ++i) {
    wrong.push_back(emulator::instruction(static_cast<moe::gpu::Instruction>(i)));
    wrong.back().sum_run = wrong.back().dim == 32 ? 8 : wrong.back().sum_run / 2;
  }
  Loaded l = load(ragged());
  const OwnedInputs in = inputs(l, 5);
  for (const Config& config : every_tile(l.problem)) {
    const auto p = plan(l, 5, config);
    ASSERT_NE(p, nullptr);
    Output y;
    {
      std::vector<std::unique_ptr<emulator::InsteadOf>> instead;
      for (std::size_t i = 0; i < wrong.size(); ++i) {
        instead.push_back(
            std::make_unique<emulator::InsteadOf>(static_cast<moe::gpu::Instruction>(i), wrong[i]));
      }
      y = run(*p, in);
    }
    const ErrorMetrics error = error_of(l, y, in, p->identity().numerics);
    EXPECT_TRUE(error.non_finite > 0 || error.relative_l2 > 0.1) << error.relative_l2;
  }
}

TEST_P(Emulated, WeightSetsAreAlike) {
  Loaded l = load(ragged());
  const OwnedInputs in = inputs(l, 5);
  const auto p = plan(l, 5);
  const Output first = run(*p, in);
  EXPECT_EQ(run(*p, in, {.calls = 1, .first_set = 1}), first);
}

}  // namespace
}  // namespace moegauge
