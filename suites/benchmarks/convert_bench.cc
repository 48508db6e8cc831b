// MXFP8 to block FP8, in memory: bytes_per_second counts values and scales read.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>
#include <vector>

#include "reference/convert/mxfp8_to_block.h"
#include "reference/formats/e8m0.h"
#include "reference/formats/fp8.h"

namespace moegauge {
namespace {

// Gaussian weights [8, 2048, 4096] in groups of 32; argument: threads.
void mxfp8_to_fp8_block(benchmark::State& state) {
  constexpr std::int64_t experts = 8, rows = 2048, cols = 4096;
  std::vector<std::uint8_t> values(experts * rows * cols), scales(values.size() / mx_group);
  std::minstd_rand random(1);
  std::normal_distribution<float> normal(0, 0.02f);
  std::vector<float> pool_of_values(1 << 16);
  for (float& value : pool_of_values) value = normal(random);
  for (std::size_t g = 0; g < scales.size(); ++g) {
    const float* group = pool_of_values.data() + random() % (pool_of_values.size() - mx_group);
    float amax = 0;
    for (int i = 0; i < mx_group; ++i) amax = std::max(amax, std::abs(group[i]));
    scales[g] = e8m0_ceil(amax, kE4m3fnMax);
    for (std::size_t i = 0; i < mx_group; ++i) {
      values[g * mx_group + i] = float_to_e4m3fn(group[i] / e8m0_to_float(scales[g]));
    }
  }
  ThreadPool pool(static_cast<int>(state.range(0)));
  std::vector<float> block_scales(experts * rows / 128 * cols / 128);
  std::vector<std::uint8_t> out(values.size());
  for (auto _ : state) {
    const BlockConversion sums = mxfp8_to_block(
        {experts, rows, cols, values, scales}, {}, pool, block_scales,
        [&](std::int64_t first, auto bytes) { std::ranges::copy(bytes, out.begin() + first); });
    benchmark::DoNotOptimize(sums);
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(values.size() + scales.size()));
}
BENCHMARK(mxfp8_to_fp8_block)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace moegauge

BENCHMARK_MAIN();
