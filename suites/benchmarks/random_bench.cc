// How fast input values are generated, in elements per second on one thread.
#include <benchmark/benchmark.h>

#include <vector>

#include "reference/inputs.h"
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

void original_rows(benchmark::State& state, Distribution distribution, int unit_spread) {
  const Layer layer = {.experts = 1, .top_k = 1, .hidden_size = 2048, .intermediate_size = 768};
  const auto experts =
      generated_experts(layer, make_scheme("fp8_block"), distribution, 1, unit_spread);
  const MatrixShape shape = weight_shape(layer, Role::w13);
  std::vector<float> rows(static_cast<std::size_t>(64 * shape.cols));
  for (auto _ : state) {
    experts->original(0, shape, 0, 64, rows);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(rows.size()));
}
BENCHMARK_CAPTURE(original_rows, gaussian, Distribution::gaussian, 0);
BENCHMARK_CAPTURE(original_rows, gaussian_spread, Distribution::gaussian, 2);
BENCHMARK_CAPTURE(original_rows, uniform, Distribution::uniform, 0);
BENCHMARK_CAPTURE(original_rows, heavy_tail, Distribution::heavy_tail, 0);
BENCHMARK_CAPTURE(original_rows, degenerate, Distribution::degenerate, 0);
BENCHMARK_CAPTURE(original_rows, exact, Distribution::exact, 0);

}  // namespace
}  // namespace moegauge

BENCHMARK_MAIN();
