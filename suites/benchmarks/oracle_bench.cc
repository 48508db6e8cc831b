// How long the oracle takes for a pool of 256 tokens of a real layer, and the error metrics for
// 8192 rows of outputs. Generating the weights, twice, and quantising them is part of it, and with
// few tokens per expert most of it: oracle_gemm_bench has the rate of the products alone. Counters:
// FLOPS, of the products of both results, emulated and unquantised; peak_bytes, of this process so
// far, so of one case where --benchmark_filter picks one.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reference/base/thread_pool.h"
#include "reference/dtype.h"
#include "reference/error.h"
#include "reference/inputs.h"
#include "reference/oracle.h"

namespace moegauge {
namespace {

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
  const std::shared_ptr<const Scheme> scheme = make_scheme(c.scheme);
  const auto experts = generated_experts(layer, scheme, Distribution::gaussian, 1);
  const OwnedInputs inputs = generate_inputs(layer, Distribution::gaussian,
                                             parse_routing_law("uniform", layer), 256, 1, 0);
  for (auto _ : state) {
    const Truth truth =
        compute_truth(layer, *scheme, {}, *experts, inputs.view(), ThreadPool::usable_processors());
    benchmark::DoNotOptimize(truth.emulated.data());
  }
  const auto pairs = std::ranges::count_if(
      inputs.topk_ids, [&](std::int32_t id) { return id >= 0 && layer.local_id(id) >= 0; });
  const double products = 3 * static_cast<double>(pairs * c.hidden * c.intermediate);
  state.counters["FLOPS"] = benchmark::Counter(
      2 * 2 * products, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_bytes"] =
      benchmark::Counter(static_cast<double>(usage.ru_maxrss) * 1024, benchmark::Counter::kDefaults,
                         benchmark::Counter::kIs1024);
}

void errors_of_8192_rows(benchmark::State& state) {
  constexpr std::int64_t rows = 8192, cols = 7168, pool_rows = 256;
  std::vector<double> b(pool_rows * cols);
  for (std::size_t i = 0; i < b.size(); ++i)
    b[i] = round_to(Dtype::bf16, std::sin(static_cast<double>(i)));
  const std::vector<double> magnitude(b.size(), 1.0);
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
