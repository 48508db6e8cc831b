#include "reference/convert/mxfp8_to_block.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "reference/convert/block_avx512.h"
#include "reference/convert/counted_block.h"
#include "reference/formats/bf16.h"
#include "reference/formats/e8m0.h"
#include "reference/formats/fp8.h"

namespace moegauge {
namespace {

float dequantised(std::uint8_t value, std::uint8_t scale) {
  return bf16_to_float(float_to_bf16(e4m3fn_to_float(value) * e8m0_to_float(scale)));
}

// Some rows of one matrix, which make up one row of blocks.
struct Slab {
  std::int64_t rows, cols;
  std::uint8_t* values;        // [rows, cols]
  const std::uint8_t* scales;  // [rows, ceil(cols / 32)]

  // fn(values, n, scale) for each run of columns [begin, end) under one scale, row by row.
  template <typename Fn>
  void for_each_run(std::int64_t begin, std::int64_t end, Fn&& fn) const {
    const std::int64_t groups = blocks_of(cols, mx_group);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = begin; c < end;) {
        const std::int64_t next = std::min(end, (c / mx_group + 1) * mx_group);
        fn(values + r * cols + c, next - c, scales[r * groups + c / mx_group]);
        c = next;
      }
    }
  }

  std::int64_t first_non_finite(std::int64_t begin, std::int64_t end) const {
    std::int64_t first = -1;
    for_each_run(begin, end, [&](const std::uint8_t* run, std::int64_t n, std::uint8_t scale) {
      for (std::int64_t i = 0; first < 0 && i < n; ++i) {
        if (!std::isfinite(dequantised(run[i], scale))) first = run + i - values;
      }
    });
    return first;
  }
};

// Of one thread.
struct Worker {
  std::vector<std::uint8_t> values;
  CountedBlock counted;
  std::unique_ptr<BlockAvx512> vectors = BlockAvx512::make();
};

float convert_block(const Slab& slab, std::int64_t begin, std::int64_t end, bool fnuz,
                    Worker& worker, BlockConversion& sums) {
  if (worker.vectors && begin % mx_group == 0 && (end - begin) % mx_group == 0) {
    const std::int64_t scale_stride = blocks_of(slab.cols, mx_group);
    const auto scale = worker.vectors->convert({.rows = slab.rows,
                                                .groups = (end - begin) / mx_group,
                                                .values = slab.values + begin,
                                                .row_stride = slab.cols,
                                                .scales = slab.scales + begin / mx_group,
                                                .scale_stride = scale_stride},
                                               fnuz, sums);
    if (scale) return *scale;
  }
  CountedBlock& block = worker.counted;
  block.clear();
  slab.for_each_run(begin, end, [&](const std::uint8_t* run, std::int64_t n, std::uint8_t scale) {
    block.count(run, n, scale);
  });
  const float scale = block.close(fnuz, sums);
  if (sums.non_finite > 0) sums.first_non_finite = slab.first_non_finite(begin, end);
  slab.for_each_run(begin, end, [&](std::uint8_t* run, std::int64_t n, std::uint8_t group_scale) {
    block.replace(run, n, group_scale);
  });
  return scale;
}

BlockConversion convert_slab(const Slab& slab, const BlockTarget& target, Worker& worker,
                             float* scales) {
  BlockConversion sums;
  for (std::int64_t begin = 0; begin < slab.cols; begin += target.block_cols) {
    const std::int64_t end = std::min(slab.cols, begin + target.block_cols);
    BlockConversion own;
    *scales++ = convert_block(slab, begin, end, target.fnuz, worker, own);
    sums += own;
  }
  return sums;
}

void check(const MxTensor& t, const BlockTarget& target, std::size_t scales) {
  const auto in_range = [](std::int64_t block) { return block >= 1 && block <= max_block_extent; };
  if (t.experts < 0 || t.rows < 0 || t.cols < 0 || !in_range(target.block_rows) ||
      !in_range(target.block_cols)) {
    throw std::invalid_argument("mxfp8_to_block: an extent is out of range");
  }
  // Beside an extent of zero the others may be any number, and their product need not fit.
  const bool empty = t.experts == 0 || t.rows == 0 || t.cols == 0;
  if (empty && t.values.empty() && t.scales.empty() && scales == 0) return;
  const std::int64_t matrices = t.experts * t.rows;
  if (std::ssize(t.values) != matrices * t.cols ||
      std::ssize(t.scales) != matrices * blocks_of(t.cols, mx_group) ||
      static_cast<std::int64_t>(scales) !=
          t.experts * blocks_of(t.rows, target.block_rows) * blocks_of(t.cols, target.block_cols)) {
    throw std::invalid_argument("mxfp8_to_block: values and scales do not match the shape");
  }
}

}  // namespace

double BlockConversion::relative_error() const {
  return value_squares == 0 ? 0 : std::sqrt(difference_squares / value_squares);
}

BlockConversion& BlockConversion::operator+=(const BlockConversion& next) {
  difference_squares += next.difference_squares;
  value_squares += next.value_squares;
  non_finite += next.non_finite;
  if (first_non_finite < 0 ||
      (next.first_non_finite >= 0 && next.first_non_finite < first_non_finite)) {
    first_non_finite = next.first_non_finite;
  }
  return *this;
}

BlockConversion mxfp8_to_block(const MxTensor& t, const BlockTarget& target, ThreadPool& pool,
                               std::span<float> scales, const ValueSink& sink) {
  check(t, target, scales.size());
  if (t.values.empty()) return {};
  std::vector<Worker> workers(static_cast<std::size_t>(pool.threads()));
  const std::int64_t slabs = blocks_of(t.rows, target.block_rows);
  const std::int64_t row_of_scales = blocks_of(t.cols, target.block_cols);
  std::vector<BlockConversion> sums(static_cast<std::size_t>(t.experts * slabs));
  pool.parallel_for(t.experts * slabs, [&](std::int64_t i, int thread) {
    Worker& worker = workers[static_cast<std::size_t>(thread)];
    const std::int64_t within = i % slabs * target.block_rows;
    const std::int64_t row = i / slabs * t.rows + within;  // of all matrices one below the other
    const std::int64_t rows = std::min(target.block_rows, t.rows - within);
    const auto values = t.values.subspan(static_cast<std::size_t>(row * t.cols),
                                         static_cast<std::size_t>(rows * t.cols));
    // One pass in order over memory that may come from a file; then in place, in the cache.
    worker.values.assign(values.begin(), values.end());
    const Slab slab{rows, t.cols, worker.values.data(),
                    t.scales.data() + row * blocks_of(t.cols, mx_group)};
    BlockConversion& own = sums[static_cast<std::size_t>(i)];
    own = convert_slab(slab, target, worker, scales.data() + i * row_of_scales);
    if (own.first_non_finite >= 0) own.first_non_finite += row * t.cols;
    sink(row * t.cols, worker.values);
  });
  BlockConversion total;
  for (const BlockConversion& own : sums) total += own;
  return total;
}

}  // namespace moegauge
