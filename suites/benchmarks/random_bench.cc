// How fast input values are generated, in elements per second on one thread.
#include <benchmark/benchmark.h>

#include <vector>

#include "reference/random/value_table.h"

namespace moegauge {
namespace {

void gaussian_fill(benchmark::State& state) {
  const auto table = ValueTable::gaussian(1.0, Dtype::bf16);
  std::vector<float> row(static_cast<std::size_t>(state.range(0)));
  std::uint64_t index = 0;
  for (auto _ : state) {
    table.fill(RandomStream(1, Purpose::w13, index++), 0, row);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(gaussian_fill)->Arg(2048)->Arg(7168);

}  // namespace
}  // namespace moegauge

BENCHMARK_MAIN();
