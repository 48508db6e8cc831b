#include "kernels/cpu/cpu_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <tuple>

#include "kernels/cpu/layer_testing.h"
#include "kernels/cpu/machine.h"

namespace moegauge {
namespace {

using cpu::IsaLevel;
using testing::HasSubstr;
using namespace testing_support;

std::vector<IsaLevel> supported_levels() {
  std::vector<IsaLevel> levels;
  for (const IsaLevel level : cpu::all_isa_levels()) {
    if (cpu::supported(level)) levels.push_back(level);
  }
  return levels;
}

Problem problem(const Layer& layer, std::string_view scheme, std::int64_t tokens = 0) {
  return {layer, std::shared_ptr<const Scheme>(make_scheme(scheme)), tokens};
}

std::string fault_text(const std::optional<Fault>& fault) { return fault ? fault->sentence : ""; }

// A layer loaded at one level, with everything in the way of an answer turned into a test failure.
class Loaded {
 public:
  Loaded(const Problem& p, const ExpertSource& experts, IsaLevel level, int sets = 1)
      : backend_(make_cpu_backend(level)), problem_(p) {
    auto loaded = backend_->load(p, experts, sets);
    if (!loaded) throw std::runtime_error(loaded.error().sentence);
    layer_ = std::move(*loaded);
  }

  std::unique_ptr<Plan> plan(std::int64_t tokens, const Config& config = {}, int slots = 1) {
    auto plan = layer_->plan(tokens, config, slots);
    if (!plan) throw std::runtime_error(plan.error().sentence);
    return std::move(*plan);
  }

  std::vector<std::uint16_t> run(const TestInputs& in, const Config& config = {}) {
    const auto p = plan(in.tokens, config);
    EXPECT_EQ(fault_text(p->set_inputs(0, in.view())), "");
    EXPECT_EQ(fault_text(p->poison()), "");
    const auto seconds = p->run({.calls = 1});
    EXPECT_TRUE(seconds.has_value());
    std::vector<std::uint16_t> y(in.x.size());
    EXPECT_EQ(fault_text(p->fetch(0, y)), "");
    return y;
  }

  LoadedLayer& layer() { return *layer_; }

 private:
  std::unique_ptr<const Backend> backend_;
  Problem problem_;
  std::unique_ptr<LoadedLayer> layer_;
};

// The limits of the design for kernels that accumulate in fp32.
ErrorLimits limits(const Problem& p, std::int64_t tokens) {
  return p.scheme->error_limits(p.layer.dtype, false).over(tokens);
}

void expect_close(const Problem& p, const TestInputs& in, IsaLevel level) {
  const RandomExperts experts(p.layer, p.scheme, 3);
  Loaded loaded(p, experts, level);
  const Numerics numerics = loaded.plan(in.tokens)->identity().numerics;
  const auto truth = plain_layer(p.layer, *p.scheme, numerics, experts, in);
  const Distance d = distance(p.layer, loaded.run(in), truth);
  EXPECT_LE(d.relative_l2, limits(p, in.tokens).relative_l2) << to_string(level);
  EXPECT_LE(d.worst_token, limits(p, in.tokens).worst_token) << to_string(level);
}

struct Format {
  std::string_view scheme;
  Dtype dtype;
};
constexpr Format kFormats[] = {{"bf16", Dtype::bf16},
                               {"fp16", Dtype::fp16},
                               {"fp8_block", Dtype::bf16},
                               {"fp8_block", Dtype::fp16},
                               {"fp8_block_fnuz", Dtype::bf16},
                               {"fp8_ptpc", Dtype::bf16},
                               {"fp8_ptpc_fnuz224", Dtype::bf16},
                               {"fp8_tensor", Dtype::bf16},
                               {"fp8_tensor_static", Dtype::bf16},
                               {"fp8_tensor_fnuz", Dtype::fp16},
                               {"mxfp8", Dtype::bf16},
                               {"mxfp8_floor", Dtype::bf16},
                               {"mxfp8_fnuz224", Dtype::bf16},
                               {"w4a16", Dtype::bf16},
                               {"w4a16_g32_zp", Dtype::bf16},
                               {"w4a16_g64", Dtype::fp16},
                               {"w4a16_channel_zp", Dtype::bf16},
                               {"w4a16_g32_zp_actorder", Dtype::bf16},
                               {"w4a16_actorder", Dtype::fp16},
                               {"w8a16", Dtype::bf16},
                               {"w8a16_g64_zp", Dtype::bf16},
                               {"w8a16_channel", Dtype::fp16},
                               {"w8a8_int8", Dtype::bf16},
                               {"mxfp4", Dtype::bf16},
                               {"mxfp4", Dtype::fp16}};

class EveryLevelAndFormat : public testing::TestWithParam<std::tuple<IsaLevel, Format>> {
 protected:
  IsaLevel level() const { return std::get<0>(GetParam()); }
  std::string_view scheme() const { return std::get<1>(GetParam()).scheme; }
  Layer layer(std::int64_t experts, std::int64_t top_k, std::int64_t k, std::int64_t n) const {
    return {.experts = experts,
            .top_k = top_k,
            .hidden_size = k,
            .intermediate_size = n,
            .dtype = std::get<1>(GetParam()).dtype};
  }
  void expect_close_on(const Layer& l, std::int64_t tokens) {
    expect_close(problem(l, scheme(), tokens), random_inputs(l, tokens, 11), level());
  }
};

INSTANTIATE_TEST_SUITE_P(Cpu, EveryLevelAndFormat,
                         testing::Combine(testing::ValuesIn(supported_levels()),
                                          testing::ValuesIn(kFormats)),
                         [](const auto& param) {
                           const Format f = std::get<1>(param.param);
                           return std::string(to_string(std::get<0>(param.param))) + "_" +
                                  std::string(f.scheme) +
                                  (f.dtype == Dtype::fp16 ? "_fp16" : "_bf16") + "_activations";
                         });

TEST_P(EveryLevelAndFormat, AgreesWithAPlainFp64Loop) { expect_close_on(layer(4, 2, 256, 128), 9); }

TEST_P(EveryLevelAndFormat, ServesWidthsThatNoBlockOrVectorDivides) {
  for (const auto& [k, n] : {std::pair{192, 80},
                             {64, 192},
                             {80, 64},
                             {200, 72},
                             {130, 33},
                             {1, 1},
                             {17, 300},
                             {96, 1344}}) {
    SCOPED_TRACE(testing::Message() << "K " << k << " N " << n);
    expect_close_on(layer(3, 2, k, n), 5);
  }
}

TEST_P(EveryLevelAndFormat, ServesAnyNumberOfRowsPerExpert) {
  for (const std::int64_t tokens : {1, 2, 3, 5, 6, 7, 13, 24, 50}) {
    SCOPED_TRACE(testing::Message() << tokens << " tokens");
    expect_close_on(layer(1, 1, 128, 96), tokens);
  }
}

TEST_P(EveryLevelAndFormat, ServesEveryActivation) {
  for (const ActivationKind kind :
       {ActivationKind::silu_and_mul, ActivationKind::gelu_and_mul,
        ActivationKind::gelu_tanh_and_mul, ActivationKind::swiglu_clamped}) {
    SCOPED_TRACE(testing::Message() << "activation " << static_cast<int>(kind));
    Layer l = layer(4, 2, 128, 96);
    l.activation = {.kind = kind, .limit = 1.5};
    expect_close_on(l, 7);
  }
}

TEST_P(EveryLevelAndFormat, ServesInterleavedGateAndUpAndBiases) {
  Layer l = layer(4, 2, 160, 144);
  l.gate_up_order = GateUpOrder::interleaved;
  l.expert_bias = true;
  expect_close_on(l, 6);
  l.gate_up_order = GateUpOrder::concatenated;
  l.adds_w2_bias = false;
  expect_close_on(l, 6);
}

// With act_order this rank's columns of w2 lie in groups of all 4 N.
TEST_P(EveryLevelAndFormat, ServesTheFirstRanksColumns) {
  Layer l = layer(3, 2, 128, 72);
  l.whole_intermediate_size = 4 * 72;
  expect_close_on(l, 7);
}

TEST_P(EveryLevelAndFormat, WeighsTheInputInsteadOfTheOutputWhenAsked) {
  Layer l = layer(4, 1, 128, 96);
  l.router_weight_on_input = true;
  expect_close_on(l, 9);
}

TEST_P(EveryLevelAndFormat, CountsDuplicatesAndLeavesOutDroppedAndForeignPairs) {
  Layer l = layer(6, 3, 128, 64);
  l.expert_map = {-1, 0, 1, -1, 2, -1};
  TestInputs in = random_inputs(l, 4, 5);
  in.topk_ids = {1,  1,  2,  // a duplicate
                 -1, 4,  0,  // dropped, local, elsewhere
                 0,  3,  5,  // nothing local
                 -1, -1, -1};
  const Problem p = problem(l, scheme(), 4);
  expect_close(p, in, level());
  const RandomExperts experts(l, p.scheme, 3);
  const auto y = Loaded(p, experts, level()).run(in);
  for (std::size_t i = 2 * 128; i < y.size(); ++i) ASSERT_EQ(y[i], 0) << i;
}

TEST_P(EveryLevelAndFormat, ReturnsTheSameBitsForAnyThreadsBlocksAndBatch) {
  const Layer l = layer(5, 2, 320, 200);
  const Problem p = problem(l, scheme());
  const RandomExperts experts(l, p.scheme, 3);
  Loaded loaded(p, experts, level());
  const TestInputs in = random_inputs(l, 37, 7);
  const auto expected = loaded.run(in, {{{"num_threads", 1}}});
  for (const Config& config :
       {Config{{{"num_threads", 2}}}, Config{{{"num_threads", 3}, {"BLOCK_SIZE_M", 1}}},
        Config{{{"num_threads", 4}, {"BLOCK_SIZE_M", 7}, {"BLOCK_SIZE_N", 256}}},
        Config{{{"BLOCK_SIZE_K", 256}, {"prefetch_distance", 0}}},
        Config{{{"launch_per_expert", 1}, {"num_threads", 2}}}}) {
    EXPECT_EQ(loaded.run(in, config), expected);
  }
  // A scale per tensor depends on every token of the call.
  const OperandTraits x = p.scheme->traits().activation;
  if (x.scale != ScaleKind::none && x.unit.rows == 0 && !x.static_scale) return;
  // The fifth token alone.
  TestInputs one;
  one.tokens = 1;
  one.x.assign(in.x.begin() + 5 * 320, in.x.begin() + 6 * 320);
  one.topk_ids.assign(in.topk_ids.begin() + 10, in.topk_ids.begin() + 12);
  one.topk_weights.assign(in.topk_weights.begin() + 10, in.topk_weights.begin() + 12);
  const std::vector<std::uint16_t> row(expected.begin() + 5 * 320, expected.begin() + 6 * 320);
  EXPECT_EQ(loaded.run(one), row);
}

TEST_P(EveryLevelAndFormat, KeepsANanTokenToItself) {
  const Layer l = layer(2, 2, 128, 128);
  const Problem p = problem(l, scheme());
  const RandomExperts experts(l, p.scheme, 3);
  Loaded loaded(p, experts, level());
  TestInputs in = random_inputs(l, 8, 9);
  const auto finite = loaded.run(in);
  in.x[3 * 128 + 77] = 0x7FFF;
  const auto y = loaded.run(in);
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (i / 128 == 3) {
      ASSERT_TRUE(std::isnan(to_float(l.dtype, y[i]))) << i;
    } else {
      ASSERT_EQ(y[i], finite[i]) << i;
    }
  }
}

TEST(CpuBackend, ReturnsTheSameBitsAtEveryLevelWithoutABf16Dot) {
  for (const Format f : kFormats) {
    const Layer l = {
        .experts = 4, .top_k = 2, .hidden_size = 288, .intermediate_size = 200, .dtype = f.dtype};
    const Problem p = problem(l, f.scheme);
    const RandomExperts experts(l, p.scheme, 3);
    const TestInputs in = random_inputs(l, 21, 7);
    const auto expected = Loaded(p, experts, IsaLevel::portable).run(in);
    for (const IsaLevel level : {IsaLevel::avx2, IsaLevel::avx512}) {
      // fp16 products do not fit fp32, so fusing shows.
      if (!cpu::supported(level) || f.scheme == "fp16") continue;
      EXPECT_EQ(Loaded(p, experts, level).run(in), expected) << f.scheme << to_string(level);
    }
  }
}

TEST(CpuBackend, ZeroTokensAreASuccessThatTakesNoTime) {
  const Layer l = {.experts = 2, .top_k = 1, .hidden_size = 64, .intermediate_size = 32};
  const Problem p = problem(l, "bf16");
  const RandomExperts experts(l, p.scheme, 3);
  Loaded loaded(p, experts, cpu::best_isa_level());
  const auto plan = loaded.plan(0);
  EXPECT_EQ(fault_text(plan->set_inputs(0, {})), "");
  const auto seconds = plan->run({.calls = 3});
  ASSERT_TRUE(seconds.has_value());
  EXPECT_EQ(*seconds, 0);
}

TEST(CpuBackend, RotatesSlotsAndWeightSetsUnlessHot) {
  const Layer l = {.experts = 2, .top_k = 1, .hidden_size = 64, .intermediate_size = 32};
  const Problem p = problem(l, "bf16");
  const RandomExperts experts(l, p.scheme, 3);
  Loaded loaded(p, experts, cpu::best_isa_level(), 2);
  EXPECT_EQ(loaded.layer().weight_sets(), 2);
  const TestInputs a = random_inputs(l, 3, 1), b = random_inputs(l, 3, 2);
  const auto ya = loaded.run(a), yb = loaded.run(b);
  for (const Cache cache : {Cache::cold_weights, Cache::cold, Cache::hot}) {
    const auto plan = loaded.plan(3, {}, 2);
    EXPECT_EQ(fault_text(plan->set_inputs(0, a.view())), "");
    EXPECT_EQ(fault_text(plan->set_inputs(1, b.view())), "");
    EXPECT_EQ(fault_text(plan->poison()), "");
    const auto seconds = plan->run({.calls = 4, .cache = cache});
    ASSERT_TRUE(seconds.has_value());
    EXPECT_GT(*seconds, 0);
    std::vector<std::uint16_t> y(ya.size());
    EXPECT_EQ(fault_text(plan->fetch(0, y)), "");
    EXPECT_EQ(y, ya);
    EXPECT_EQ(fault_text(plan->fetch(1, y)), "");
    if (cache == Cache::hot) {
      EXPECT_EQ(y, std::vector<std::uint16_t>(y.size(), 0x7FFF));  // untouched since poison()
    } else {
      EXPECT_EQ(y, yb);
    }
  }
}

TEST(CpuBackend, SaysWhatIsWrongWithInputs) {
  const Layer l = {.experts = 2, .top_k = 1, .hidden_size = 64, .intermediate_size = 32};
  const Problem p = problem(l, "bf16");
  const RandomExperts experts(l, p.scheme, 3);
  Loaded loaded(p, experts, cpu::best_isa_level());
  const auto plan = loaded.plan(3);
  TestInputs in = random_inputs(l, 3, 1);
  in.topk_ids[1] = 2;
  EXPECT_EQ(fault_text(plan->set_inputs(0, in.view())), "expert id 2 lies outside [-1, 2)");
  EXPECT_THAT(fault_text(plan->set_inputs(0, random_inputs(l, 2, 1).view())),
              HasSubstr("2 tokens, 128 activations"));
  EXPECT_THAT(fault_text(plan->set_inputs(1, in.view())), HasSubstr("slot 1"));
}

TEST(CpuBackend, RefusesWhatTheLayerDoesNotDefine) {
  const auto backend = make_cpu_backend(cpu::best_isa_level());
  Layer l = {.experts = 2, .top_k = 2, .hidden_size = 64, .intermediate_size = 32};
  EXPECT_EQ(backend->refuses(problem(l, "bf16")), std::nullopt);
  l.router_weight_on_input = true;
  const auto refusal = backend->refuses(problem(l, "bf16"));
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->reason, RefusalReason::router_weight_on_input);
  EXPECT_THAT(refusal->sentence, HasSubstr("top_k 2"));
  l = {.experts = 100000, .top_k = 2, .hidden_size = 7168, .intermediate_size = 65536};
  EXPECT_EQ(backend->refuses(problem(l, "bf16"))->reason, RefusalReason::memory);
  l.hidden_size = 0;
  EXPECT_EQ(backend->refuses(problem(l, "bf16"))->reason, RefusalReason::shape);
}

TEST(CpuBackend, TellsKernelsApartByTheirHash) {
  const Layer l = {.experts = 2, .top_k = 1, .hidden_size = 64, .intermediate_size = 32};
  const Problem p = problem(l, "bf16");
  const RandomExperts experts(l, p.scheme, 3);
  Loaded loaded(p, experts, cpu::best_isa_level());
  const std::string hash = loaded.plan(3)->identity().hash;
  EXPECT_EQ(hash.size(), 16u);
  EXPECT_EQ(loaded.plan(3)->identity().hash, hash);
  EXPECT_NE(loaded.plan(3, {{{"BLOCK_SIZE_M", 5}}})->identity().hash, hash);
  EXPECT_EQ(loaded.plan(3)->identity().executed_scheme, "bf16");
}

TEST(CpuBackend, MeasuresCeilingsThatAMachineCanHave) {
  const Layer l = {.experts = 2, .top_k = 1, .hidden_size = 64, .intermediate_size = 32};
  const auto ceilings =
      make_cpu_backend(cpu::best_isa_level())->measure_ceilings(problem(l, "bf16"));
  ASSERT_TRUE(ceilings.has_value());
  EXPECT_GT(ceilings->read_bytes_per_s, 1e8);
  EXPECT_LT(ceilings->read_bytes_per_s, 1e13);
  EXPECT_GT(ceilings->dot_flops_per_s, 1e8);
  EXPECT_LT(ceilings->dot_flops_per_s, 1e15);
}

}  // namespace
}  // namespace moegauge
