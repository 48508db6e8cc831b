// How fast the oracle's fp64 GEMM is, per instruction set and shape. The counter FLOPS is the rate
// over wall time, all usable processors working.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reference/base/thread_pool.h"
#include "reference/gemm/gemm.h"

namespace moegauge {
namespace {

struct Shape {
  const char* name;
  std::int64_t m, n, k;
};

// Deterministic values of both signs; fp64 speed does not depend on them as long as none is
// subnormal.
std::vector<double> values(std::int64_t n) {
  std::vector<double> v(static_cast<std::size_t>(n));
  std::uint64_t state = 1;
  for (double& x : v) {
    state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX generator
    x = static_cast<double>(static_cast<std::int64_t>(state)) * 0x1p-63;
  }
  return v;
}

void multiply(benchmark::State& state, Gemm gemm, Shape shape) {
  ThreadPool pool(ThreadPool::usable_processors());
  const auto a = values(shape.m * shape.k), b = values(shape.n * shape.k);
  std::vector<double> c(static_cast<std::size_t>(shape.m * shape.n));
  for (auto _ : state) {
    gemm.multiply({a.data(), shape.m, shape.k, shape.k}, {b.data(), shape.n, shape.k, shape.k},
                  {c.data(), shape.m, shape.n, shape.n}, pool);
    benchmark::ClobberMemory();
  }
  state.counters["FLOPS"] = benchmark::Counter(
      2.0 * static_cast<double>(shape.m * shape.n * shape.k),
      benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

}  // namespace
}  // namespace moegauge

int main(int argc, char** argv) {
  using namespace moegauge;
  for (const auto set : {InstructionSet::portable, InstructionSet::avx2, InstructionSet::avx512}) {
    const auto gemm = Gemm::open(set);
    if (!gemm) continue;  // not on this processor
    // A square one, and the first and second GEMM of one expert of Qwen3-30B-A3B with 256 tokens.
    for (const Shape shape : {Shape{"square", 1920, 1920, 1920}, Shape{"w13", 256, 1536, 2048},
                              Shape{"w2", 256, 2048, 768}}) {
      benchmark::RegisterBenchmark(
          ("gemm/" + std::string(to_string(set)) + "/" + shape.name).c_str(),
          [gemm = *gemm, shape](benchmark::State& state) { multiply(state, gemm, shape); })
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
