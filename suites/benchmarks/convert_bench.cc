// MXFP8 to block FP8, in memory and from file to file: bytes_per_second counts values and scales
// read. Files lie in the folder for temporary files (TMPDIR), the input in the page cache.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "harness/tensors/convert_checkpoint.h"
#include "harness/tensors/safetensors_writer.h"
#include "reference/convert/mxfp8_to_block.h"
#include "reference/formats/e8m0.h"
#include "reference/formats/fp8.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

// Weights [experts, rows, cols] in groups of 32.
struct Gaussian {
  std::int64_t experts, rows, cols;
  std::vector<std::uint8_t> values, scales;

  Gaussian(std::int64_t e, std::int64_t r, std::int64_t c)
      : experts(e),
        rows(r),
        cols(c),
        values(static_cast<std::size_t>(e * r * c)),
        scales(values.size() / mx_group) {
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
  }
};

// Argument: threads.
void mxfp8_to_fp8_block(benchmark::State& state) {
  static const Gaussian in(8, 2048, 4096);
  ThreadPool pool(static_cast<int>(state.range(0)));
  std::vector<float> block_scales(in.values.size() / (128 * 128));
  std::vector<std::uint8_t> out(in.values.size());
  for (auto _ : state) {
    const BlockConversion sums = mxfp8_to_block(
        {in.experts, in.rows, in.cols, in.values, in.scales}, {}, pool, block_scales,
        [&](std::int64_t first, auto bytes) { std::ranges::copy(bytes, out.begin() + first); });
    benchmark::DoNotOptimize(sums);
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(in.values.size() + in.scales.size()));
}
BENCHMARK(mxfp8_to_fp8_block)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

// Four tensors of 268 MB and their scales, as one file. Arguments: FNUZ or not; whether OUT is
// synced.
void convert_file(benchmark::State& state) {
  const fs::path folder = fs::temp_directory_path() / "moegauge-convert-bench";
  const fs::path from = folder / "in.safetensors", to = folder / "out.safetensors";
  fs::create_directories(folder);
  {
    const Gaussian in(8, 4096, 8192);
    const std::vector<std::int64_t> shape = {in.experts, in.rows, in.cols};
    const std::vector<std::int64_t> groups = {in.experts, in.rows, in.cols / mx_group};
    std::vector<FileTensor> tensors;
    for (const char* name : {"a", "b", "c", "d"}) {
      tensors.push_back({name, TensorDtype::f8_e4m3, shape});
      tensors.push_back({std::string(name) + "_scale", TensorDtype::u8, groups});
    }
    SafetensorsWriter writer(from, tensors, {});
    for (std::size_t i = 0; i < tensors.size(); i += 2) {
      writer.write(i, 0, std::as_bytes(std::span(in.values)));
      writer.write(i + 1, 0, std::as_bytes(std::span(in.scales)));
    }
    writer.commit();
  }
  ThreadPool pool(ThreadPool::usable_processors());
  std::uint64_t bytes = 0;
  for (auto _ : state) {
    const ConvertReport report = convert_checkpoint(
        from, to, {.target = {.fnuz = state.range(0) != 0}, .sync = state.range(1) != 0}, pool,
        [](const ConvertedTensor&) {});
    bytes += report.bytes_read;
    state.PauseTiming();
    fs::remove(to);
    state.ResumeTiming();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
  fs::remove_all(folder);
}
BENCHMARK(convert_file)
    ->ArgNames({"fnuz", "sync"})
    ->Args({0, 0})
    ->Args({1, 0})
    ->Args({0, 1})
    ->MinTime(4)  // several files, since a shared host varies
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace moegauge

BENCHMARK_MAIN();
