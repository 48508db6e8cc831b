// The CPU backend on Qwen3-30B-A3B (128 experts, top 8, K 2048; N 768, and 192 as one of four
// tensor-parallel ranks serves it) against what this machine does with the very same bytes and dot
// instruction, in turn and in the same minutes:
//
//   of_read  bytes per second of the distinct experts' packed weights over what a plain
//            multi-threaded sum of the same experts' bytes reaches
//   of_dot   floating-point operations per second over those of a register-only loop of the same
//            dot instruction on all threads
//   of_floor the larger of the two: what bounds this number of tokens
//   of_ceiling bytes per second over the lesser of the read rate and the arithmetic's: decoding
//            from the first-level cache on all threads (decode_GB_per_s) and the dot loop, one
//            after the other, as both use the same units
//
// Every iteration calls the layer and the sum once per slot, in turn. Each slot has inputs of its
// own and each step works on another copy of the weights, so many that four last-level caches of
// other bytes pass before one comes again: nothing is read from a cache. Bytes and operations are
// those of these very slots. The fractions are of medians over iterations.
//
// Google Benchmark's arguments apply: --benchmark_filter=fp8_block/16.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_config.h"
#include "kernels/cpu/isa_level.h"
#include "kernels/cpu/layer_kernel.h"
#include "kernels/cpu/machine.h"
#include "kernels/cpu/packed_weights.h"
#include "reference/formats/bf16.h"
#include "reference/schemes/scheme.h"

namespace moegauge {
namespace {

using Clock = std::chrono::steady_clock;

// Canonical bytes that are cheap to make: finite values of modest size, never zeros.
class CheapExperts final : public ExpertSource {
 public:
  explicit CheapExperts(const OperandTraits& weight) : weight_(weight) {}

  void quantized(std::int64_t expert, const Matrix& out) const override {
    std::uint64_t state = static_cast<std::uint64_t>(expert) * 2 + (out.shape.role == Role::w2);
    const auto fill = [&](std::span<std::byte> bytes, std::uint64_t keep, std::uint64_t set) {
      for (std::size_t i = 0; i < bytes.size(); i += 8) {
        state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX
        const std::uint64_t word = ((state ^ (state >> 33)) & keep) | set;
        std::memcpy(bytes.data() + i, &word, std::min<std::size_t>(8, bytes.size() - i));
      }
    };
    switch (weight_.element) {
      case Element::activation_dtype:
        fill(out.values, 0x80FF'80FF'80FF'80FFu, 0x3C00'3C00'3C00'3C00u);  // bf16 of about 2^-7
        break;
      case Element::e4m3fn:
      case Element::e4m3fnuz:
        fill(out.values, 0xBFBF'BFBF'BFBF'BFBFu, 0x1010'1010'1010'1010u);  // below 2
        break;
      default:
        fill(out.values, ~std::uint64_t{0}, 0);
    }
    fill(out.zero_points, ~std::uint64_t{0}, 0);
    // All 2^-6.
    if (weight_.scale == ScaleKind::fp32) fill(out.scales, 0, 0x3C80'0000'3C80'0000u);
    if (weight_.scale == ScaleKind::activation_dtype) fill(out.scales, 0, 0x3C80'3C80'3C80'3C80u);
    if (weight_.scale == ScaleKind::e8m0) fill(out.scales, 0, 0x7979'7979'7979'7979u);
    // Neighbouring columns are of different groups.
    const auto columns = static_cast<std::int64_t>(out.group_index.size() / sizeof(std::int32_t));
    const std::int64_t groups = weight_.unit.cols > 0 ? columns / weight_.unit.cols : 1;
    for (std::int64_t c = 0; c < columns; ++c) {
      const auto group = static_cast<std::int32_t>(c % std::max<std::int64_t>(groups, 1));
      std::memcpy(out.group_index.data() + c * 4, &group, sizeof group);
    }
  }
  void original(std::int64_t, const MatrixShape&, std::int64_t, std::int64_t,
                std::span<float>) const override {}
  float activation_scale(Role) const override { return 0x1p-6f; }
  std::vector<float> bias(std::int64_t, Role) const override { return {}; }

 private:
  const OperandTraits weight_;
};

struct Shape {
  const char* name;
  std::int64_t intermediate_size;
};
constexpr const char* kSchemes[] = {
    "bf16",  "fp8_block",    "fp8_block_fnuz", "fp8_ptpc", "fp8_tensor",       "mxfp8",
    "w4a16", "w4a16_g32_zp", "w4a16_actorder", "w8a16",    "w8a16_channel_zp", "w8a8_int8",
    "mxfp4"};
constexpr Shape kShapes[] = {{"qwen3-30b-a3b", 768}, {"qwen3-30b-a3b-tp4", 192}};

// Weights of one layer and scheme, in enough copies for the smallest batch to be cold.
class Resident {
 public:
  Resident(const Shape& shape, const std::string& scheme)
      : layer_{.experts = 128,
               .top_k = 8,
               .hidden_size = 2048,
               .intermediate_size = shape.intermediate_size},
        scheme_(make_scheme(scheme)),
        served_(*cpu::find_recipe(*scheme_, layer_)),
        pool_(cpu::machine().processors),
        weights_(layer_, *scheme_, served_, kernels_, CheapExperts(scheme_->traits().weight),
                 sets_for_one_token(), pool_) {}

  const Layer& layer() const { return layer_; }
  const cpu::Recipe& recipe() const { return served_.recipe; }
  const cpu::KernelTable& kernels() const { return kernels_; }
  const cpu::PackedWeights& weights() const { return weights_; }
  ThreadPool& pool() { return pool_; }
  double expert_bytes() const {
    return static_cast<double>(weights_.w13().bytes() + weights_.w2().bytes());
  }

 private:
  int sets_for_one_token() const {
    const auto layout =
        kernels_.weight_layout(served_.recipe.weight, kernels_.dot_unit(served_.recipe.activation));
    const std::int64_t bytes = cpu::PackedWeights::set_bytes(
        layer_, cpu::MatrixLayout(layer_, Role::w13, served_.recipe, layout),
        cpu::MatrixLayout(layer_, Role::w2, served_.recipe, layout));
    const std::int64_t touched = bytes * layer_.top_k / layer_.experts;
    return static_cast<int>(4 * cpu::machine().last_level_cache_bytes / touched + 1);
  }

  Layer layer_;
  std::shared_ptr<const Scheme> scheme_;
  cpu::Served served_;
  const cpu::KernelTable& kernels_ = cpu::kernels(cpu::best_isa_level());
  ThreadPool pool_;
  cpu::PackedWeights weights_;
};

Resident& resident(const Shape& shape, const std::string& scheme) {
  static std::string name;
  static std::unique_ptr<Resident> r;
  const std::string wanted = std::string(shape.name) + scheme;
  if (name != wanted) {
    r.reset();  // before the next: both may not fit
    r = std::make_unique<Resident>(shape, scheme);
    name = wanted;
  }
  return *r;
}

// One call's inputs under uniform routing.
struct Slot {
  std::vector<std::uint16_t> x, y;
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
  std::vector<std::int32_t> distinct;
};

Slot make_slot(const Layer& layer, std::int64_t tokens, std::mt19937& engine) {
  std::normal_distribution<float> normal;
  Slot slot;
  for (std::int64_t i = 0; i < tokens * layer.hidden_size; ++i) {
    slot.x.push_back(float_to_bf16(normal(engine)));
  }
  slot.y.resize(slot.x.size());
  std::vector<std::int32_t> experts(static_cast<std::size_t>(layer.experts));
  for (std::size_t e = 0; e < experts.size(); ++e) experts[e] = static_cast<std::int32_t>(e);
  for (std::int64_t m = 0; m < tokens; ++m) {
    std::shuffle(experts.begin(), experts.end(), engine);
    slot.ids.insert(slot.ids.end(), experts.begin(), experts.begin() + layer.top_k);
  }
  slot.weights.assign(slot.ids.size(), 0.125f);
  slot.distinct = slot.ids;
  std::ranges::sort(slot.distinct);
  slot.distinct.erase(std::unique(slot.distinct.begin(), slot.distinct.end()), slot.distinct.end());
  return slot;
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Sums the packed bytes of the slot's experts, each thread a contiguous half (or whatever its share
// is) of them.
double sum_seconds(Resident& r, int set, const Slot& slot) {
  constexpr std::int64_t kPieces = 16;  // of an expert
  const auto bytes = static_cast<std::int64_t>(r.expert_bytes());
  const std::int64_t piece = (bytes / kPieces + 255) / 256 * 256;
  std::atomic<std::uint64_t> sink = 0;
  const auto begin = Clock::now();
  r.pool().parallel_for(
      static_cast<std::int64_t>(slot.distinct.size()) * kPieces,
      [&](std::int64_t i) {
        const std::int32_t expert = slot.distinct[static_cast<std::size_t>(i / kPieces)];
        const std::int64_t at = i % kPieces * piece;
        const std::int64_t length = std::min(piece, bytes / 256 * 256 - at);
        sink += r.kernels().sum(r.weights().expert_w13(set, expert) + at, length);
      },
      Schedule::contiguous);
  return seconds_since(begin);
}

double layer_seconds(cpu::LayerKernel& kernel, int set, std::int64_t tokens, Slot& slot) {
  const auto begin = Clock::now();
  kernel.run(set, {tokens, slot.x, slot.ids, slot.weights}, slot.y);
  return seconds_since(begin);
}

double dot_rate(Resident& r) {
  constexpr std::int64_t kIterations = 1'000'000;  // some milliseconds
  const cpu::DotUnit unit = r.kernels().dot_unit(r.recipe().activation);
  std::atomic<double> operations = 0;
  const auto begin = Clock::now();
  r.pool().parallel_for(
      r.pool().threads(),
      [&](std::int64_t) { operations += r.kernels().dot_loop(unit, kIterations); },
      Schedule::contiguous);
  return operations / seconds_since(begin);
}

// Bytes of packed weights per second that all threads decode, each from its own first-level cache.
double decode_rate(Resident& r) {
  constexpr std::int64_t kBytes = 16384;
  constexpr std::int64_t kIterations = 1000;  // some milliseconds
  const cpu::DotUnit unit = r.kernels().dot_unit(r.recipe().activation);
  const auto begin = Clock::now();
  r.pool().parallel_for(
      r.pool().threads(),
      [&](std::int64_t t) {
        const std::byte* const w = r.weights().expert_w13(0, t);
        for (std::int64_t i = 0; i < kIterations; ++i) {
          r.kernels().decode_loop(r.recipe().weight, unit, w, kBytes);
        }
      },
      Schedule::contiguous);
  return static_cast<double>(r.pool().threads() * kBytes * kIterations) / seconds_since(begin);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

void run(benchmark::State& state, const Shape& shape, const std::string& scheme,
         std::int64_t tokens) {
  Resident& r = resident(shape, scheme);
  const Layer& layer = r.layer();
  const cpu::CpuConfig config = cpu::heuristic_config(layer, r.recipe(), tokens, cpu::machine());
  cpu::LayerKernel kernel(layer, r.recipe(), r.kernels(), r.weights(), config, tokens, r.pool());

  const int kSlots = tokens <= 64 ? 8 : 2;
  std::mt19937 engine(7);
  std::vector<Slot> slots;
  double bytes = 0;
  for (int i = 0; i < kSlots; ++i) {
    slots.push_back(make_slot(layer, tokens, engine));
    bytes += static_cast<double>(slots.back().distinct.size()) * r.expert_bytes() / kSlots;
  }
  const double flops =
      6.0 * static_cast<double>(tokens * layer.top_k * layer.hidden_size * layer.intermediate_size);

  std::vector<double> layers, sums, dots, decodes;
  int step = 0;
  const auto next_set = [&] { return step++ % r.weights().sets(); };
  for (Slot& slot : slots) layer_seconds(kernel, next_set(), tokens, slot);
  for (auto _ : state) {
    double layer_time = 0, sum_time = 0;
    for (Slot& slot : slots) {
      layer_time += layer_seconds(kernel, next_set(), tokens, slot) / kSlots;
      sum_time += sum_seconds(r, next_set(), slot) / kSlots;
    }
    state.SetIterationTime(layer_time);
    layers.push_back(layer_time);
    sums.push_back(sum_time);
    dots.push_back(dot_rate(r));
    decodes.push_back(decode_rate(r));
  }
  const double per_call = median(layers);
  const double read = bytes / median(sums), dot = median(dots);
  const double decode = median(decodes);
  const double arithmetic = bytes / (bytes / decode + flops / dot);
  state.counters["us"] = per_call * 1e6;
  state.counters["GB_per_s"] = bytes / per_call / 1e9;
  state.counters["GFLOP_per_s"] = flops / per_call / 1e9;
  state.counters["of_read"] = bytes / per_call / read;
  state.counters["of_dot"] = flops / per_call / dot;
  state.counters["of_floor"] = std::max(bytes / read, flops / dot) / per_call;
  state.counters["of_ceiling"] = bytes / per_call / std::min(read, arithmetic);
  state.counters["decode_GB_per_s"] = decode / 1e9;
  state.counters["read_GB_per_s"] = read / 1e9;
  state.counters["dot_GFLOP_per_s"] = dot / 1e9;
}

}  // namespace
}  // namespace moegauge

int main(int argc, char** argv) {
  struct Batch {
    std::int64_t tokens;
    int iterations;  // a second or two together
  };
  constexpr Batch kBatches[] = {{1, 25}, {4, 15}, {16, 9}, {64, 5}, {256, 9}, {512, 7}, {2048, 3}};
  for (const moegauge::Shape& shape : moegauge::kShapes) {
    for (const std::string scheme : moegauge::kSchemes) {
      for (const Batch& batch : kBatches) {
        benchmark::RegisterBenchmark(
            (std::string(shape.name) + "/" + scheme + "/" + std::to_string(batch.tokens)).c_str(),
            [&shape, scheme, tokens = batch.tokens](benchmark::State& state) {
              moegauge::run(state, shape, scheme, tokens);
            })
            ->UseManualTime()
            ->Unit(benchmark::kMicrosecond)
            ->Iterations(batch.iterations);
      }
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
