// The CPU backend on Qwen3-30B-A3B (128 experts, top 8, K 2048, N 768), against what this machine
// can do, measured in the same run:
//
//   read_fraction  bytes of the distinct experts' packed weights per second over the rate of a
//   plain
//                  multi-threaded sum of the same resident bytes
//   dot_fraction   floating-point operations per second over the rate of a register-only loop of
//   the
//                  same dot instruction
//
// Google Benchmark's arguments apply: --benchmark_filter=fp8_block/16.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "reference/formats/bf16.h"
#include "reference/schemes/scheme.h"

namespace moegauge {
namespace {

// Canonical bytes that are cheap to make: finite values of modest size, never zeros.
class CheapExperts final : public ExpertSource {
 public:
  void quantized(std::int64_t expert, const Matrix& out) const override {
    std::uint64_t state = static_cast<std::uint64_t>(expert) * 2 + (out.shape.role == Role::w2);
    const auto fill = [&](std::span<std::byte> bytes, std::uint64_t keep, std::uint64_t set) {
      std::size_t i = 0;
      for (; i + 8 <= bytes.size(); i += 8) {
        state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX
        const std::uint64_t word = ((state ^ (state >> 33)) & keep) | set;
        std::memcpy(bytes.data() + i, &word, 8);
      }
      for (; i < bytes.size(); ++i) bytes[i] = std::byte{0x30};
    };
    const auto elements = static_cast<std::size_t>(out.shape.rows * out.shape.cols);
    if (out.values.size() == 2 * elements) {
      fill(out.values, 0x80FF'80FF'80FF'80FFu, 0x3C00'3C00'3C00'3C00u);  // bf16 of about 2^-7
    } else {
      fill(out.values, 0xBFBF'BFBF'BFBF'BFBFu, 0);  // E4M3 below 2
    }
    for (std::size_t i = 0; i + 4 <= out.scales.size(); i += 4) {
      const float scale = 0x1p-6f;
      std::memcpy(out.scales.data() + i, &scale, 4);
    }
  }
  void original(std::int64_t, const MatrixShape&, std::int64_t, std::int64_t,
                std::span<float>) const override {}
  std::vector<float> bias(std::int64_t, Role) const override { return {}; }
};

struct Resident {
  Problem problem;
  std::unique_ptr<LoadedLayer> layer;
  Ceilings ceilings;
};

Resident& resident(const std::string& scheme) {
  static std::string name;
  static Resident r;
  if (name == scheme) return r;
  r = {};
  name = scheme;
  r.problem = {{.experts = 128, .top_k = 8, .hidden_size = 2048, .intermediate_size = 768},
               make_scheme(scheme)};
  const Backend& backend = cpu_backend();
  auto layer = backend.load(r.problem, CheapExperts(), 1);
  auto ceilings = backend.measure_ceilings(r.problem);
  if (layer && ceilings) {
    r.layer = std::move(*layer);
    r.ceilings = *ceilings;
  }
  return r;
}

struct Inputs {
  std::vector<std::uint16_t> x;
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
  std::size_t distinct = 0;
};

Inputs uniform_inputs(const Layer& layer, std::int64_t tokens) {
  std::mt19937 engine(7);
  std::normal_distribution<float> normal;
  Inputs in;
  for (std::int64_t i = 0; i < tokens * layer.hidden_size; ++i) {
    in.x.push_back(float_to_bf16(normal(engine)));
  }
  std::vector<std::int32_t> experts(static_cast<std::size_t>(layer.experts));
  for (std::size_t e = 0; e < experts.size(); ++e) experts[e] = static_cast<std::int32_t>(e);
  std::unordered_set<std::int32_t> seen;
  for (std::int64_t m = 0; m < tokens; ++m) {
    std::shuffle(experts.begin(), experts.end(), engine);
    for (std::int64_t t = 0; t < layer.top_k; ++t) {
      in.ids.push_back(experts[static_cast<std::size_t>(t)]);
      in.weights.push_back(0.125f);
      seen.insert(in.ids.back());
    }
  }
  in.distinct = seen.size();
  return in;
}

void run(benchmark::State& state, const std::string& scheme, std::int64_t tokens) {
  Resident& r = resident(scheme);
  if (!r.layer) return state.SkipWithError("the layer could not be loaded");
  constexpr int kSlots = 8;  // distinct routings, so that small batches do not stay in the cache
  auto plan = r.layer->plan(
      tokens, cpu_backend().default_config({r.problem.layer, r.problem.scheme, tokens}), kSlots);
  if (!plan) return state.SkipWithError(plan.error().sentence.c_str());
  const Layer& layer = r.problem.layer;
  Inputs all = uniform_inputs(layer, tokens * kSlots);
  double distinct = 0;
  for (int slot = 0; slot < kSlots; ++slot) {
    const auto x_size = static_cast<std::size_t>(tokens * layer.hidden_size);
    const auto pairs = static_cast<std::size_t>(tokens * layer.top_k);
    const auto at = static_cast<std::size_t>(slot);
    const auto ids = std::span(all.ids).subspan(at * pairs, pairs);
    if ((*plan)->set_inputs(slot, {tokens, std::span(all.x).subspan(at * x_size, x_size), ids,
                                   std::span(all.weights).subspan(at * pairs, pairs)})) {
      return state.SkipWithError("inputs refused");
    }
    distinct += static_cast<double>(std::unordered_set(ids.begin(), ids.end()).size()) / kSlots;
  }
  const int calls = static_cast<int>(std::max<std::int64_t>(kSlots / tokens, 1));
  double seconds = 0;
  for (auto _ : state) {
    const auto time = (*plan)->run({.calls = calls});
    if (!time) return state.SkipWithError(time.error().sentence.c_str());
    state.SetIterationTime(*time / calls);
    seconds += *time / calls;
  }
  const double per_call = seconds / static_cast<double>(state.iterations());
  const double bytes =
      distinct * static_cast<double>(r.layer->weight_bytes()) / static_cast<double>(layer.experts);
  const double flops =
      6.0 * static_cast<double>(tokens * layer.top_k * layer.hidden_size * layer.intermediate_size);
  state.counters["GB_per_s"] = bytes / per_call / 1e9;
  state.counters["read_fraction"] = bytes / per_call / r.ceilings.read_bytes_per_s;
  state.counters["GFLOP_per_s"] = flops / per_call / 1e9;
  state.counters["dot_fraction"] = flops / per_call / r.ceilings.dot_flops_per_s;
  state.counters["read_ceiling_GB_per_s"] = r.ceilings.read_bytes_per_s / 1e9;
  state.counters["dot_ceiling_GFLOP_per_s"] = r.ceilings.dot_flops_per_s / 1e9;
}

}  // namespace
}  // namespace moegauge

int main(int argc, char** argv) {
  for (const std::string scheme : {"bf16", "fp8_block"}) {
    for (const std::int64_t tokens : {1, 4, 16, 64, 512, 2048}) {
      benchmark::RegisterBenchmark(
          ("qwen3-30b-a3b/" + scheme + "/" + std::to_string(tokens)).c_str(),
          [scheme, tokens](benchmark::State& state) { moegauge::run(state, scheme, tokens); })
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond)
          ->MinTime(0.5);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
