// How long the oracle takes for a pool of 256 tokens of a real layer, and the error metrics for
// 8192 rows of outputs. Weights come from a short table, so that it is not their generation that is
// measured; quantising them is part of it.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reference/base/thread_pool.h"
#include "reference/dtype.h"
#include "reference/error.h"
#include "reference/oracle.h"

namespace moegauge {
namespace {

std::uint64_t next(std::uint64_t& state) {  // Knuth's MMIX generator, upper bits
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

// Of both signs and many magnitudes, in bf16.
std::vector<float> table(std::size_t n, float scale) {
  std::uint64_t state = 1;
  std::vector<float> values(n);
  for (float& v : values) {
    const double a = static_cast<double>(next(state)), b = static_cast<double>(next(state));
    v = round_to(Dtype::bf16, static_cast<float>((a + b) * 0x1p-31 - 1) * scale);
  }
  return values;
}

class TableExperts final : public ExpertSource {
 public:
  TableExperts(const Layer& layer, const Scheme& scheme)
      : scheme_(scheme),
        table_(table(65521, 1 / std::sqrt(static_cast<float>(layer.hidden_size)))) {}

  void quantized(std::int64_t expert, const Matrix& out) const override {
    std::vector<float> w(static_cast<std::size_t>(out.shape.rows * out.shape.cols));
    original(expert, out.shape, 0, out.shape.rows, w);
    scheme_.quantize_weight(w, out);
  }
  void original(std::int64_t expert, const MatrixShape& shape, std::int64_t begin, std::int64_t,
                std::span<float> out) const override {
    const std::size_t first = static_cast<std::size_t>(expert * 7919 + begin * shape.cols);
    for (std::size_t i = 0; i < out.size();) {
      const std::size_t from = (first + i) % table_.size();
      const std::size_t count = std::min(table_.size() - from, out.size() - i);
      std::copy_n(table_.begin() + static_cast<std::ptrdiff_t>(from), count,
                  out.begin() + static_cast<std::ptrdiff_t>(i));
      i += count;
    }
  }
  std::vector<float> bias(std::int64_t, Role) const override { return {}; }

 private:
  const Scheme& scheme_;
  std::vector<float> table_;
};

struct Case {
  const char* name;
  const char* scheme;
  std::int64_t experts, local, top_k, hidden, intermediate;
};

void oracle(benchmark::State& state, const Case& c) {
  Layer layer = {.experts = c.experts,
                 .top_k = c.top_k,
                 .hidden_size = c.hidden,
                 .intermediate_size = c.intermediate};
  for (std::int64_t e = 0; e < c.experts; ++e) {
    layer.expert_map.push_back(e < c.local ? static_cast<std::int32_t>(e) : -1);
  }
  const auto scheme = make_scheme(c.scheme);
  const TableExperts experts(layer, *scheme);
  constexpr std::int64_t tokens = 256;
  const auto values = table(static_cast<std::size_t>(tokens * c.hidden), 1);
  std::vector<std::uint16_t> x;
  for (const float v : values) x.push_back(to_bits(layer.dtype, v));
  std::vector<std::int32_t> ids;
  std::uint64_t random = 7;
  for (std::int64_t i = 0; i < tokens * c.top_k; ++i) {
    ids.push_back(static_cast<std::int32_t>(next(random) % static_cast<std::uint64_t>(c.experts)));
  }
  const std::vector<float> weights(ids.size(), 0.125f);
  for (auto _ : state) {
    const Truth truth = compute_truth(layer, *scheme, {}, experts, {tokens, x, ids, weights},
                                      ThreadPool::usable_processors());
    benchmark::DoNotOptimize(truth.emulated.data());
  }
}

void errors_of_8192_rows(benchmark::State& state) {
  constexpr std::int64_t rows = 8192, cols = 7168, pool_rows = 256;
  const auto values = table(static_cast<std::size_t>(pool_rows * cols), 1);
  const std::vector<double> b(values.begin(), values.end()), magnitude(b.size(), 1.0);
  std::vector<double> a;
  std::vector<std::int32_t> pool;
  for (std::int32_t r = 0; r < rows; ++r) {
    pool.push_back(r * 7 % pool_rows);
    const auto first = b.begin() + pool.back() * cols;
    a.insert(a.end(), first, first + cols);
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        measure_error(a, b, magnitude, rows, cols, pool, Dtype::bf16).relative_l2);
  }
}

}  // namespace
}  // namespace moegauge

int main(int argc, char** argv) {
  using namespace moegauge;
  // DeepSeek-V3 whole: all 256 experts; a filter leaves it out.
  for (const Case& c : {Case{"qwen3-30b-a3b_ep8", "fp8_block", 128, 16, 8, 2048, 768},
                        {"qwen3-30b-a3b", "fp8_block", 128, 128, 8, 2048, 768},
                        {"qwen3-30b-a3b", "bf16", 128, 128, 8, 2048, 768},
                        {"deepseek-v3_ep16", "fp8_block", 256, 16, 8, 7168, 2048},
                        {"deepseek-v3", "fp8_block", 256, 256, 8, 7168, 2048}}) {
    benchmark::RegisterBenchmark((std::string("oracle/") + c.name + "/" + c.scheme).c_str(),
                                 [c](benchmark::State& state) { oracle(state, c); })
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::RegisterBenchmark("errors/8192x7168", errors_of_8192_rows)
      ->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
