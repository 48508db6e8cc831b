#include "reference/convert/mxfp8_to_block.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "reference/formats/bf16.h"
#include "reference/formats/e8m0.h"
#include "reference/formats/fp8.h"

namespace moegauge {
namespace {

constexpr float zero_block_amax = 1e-10f;

float dequantised(std::uint8_t value, std::uint8_t scale) {
  return bf16_to_float(float_to_bf16(e4m3fn_to_float(value) * e8m0_to_float(scale)));
}

// A block has few different scales, and 256 different values under each: what happens to an element
// is a table by (scale, value). How often each occurs gives amax, the errors and the non-finite
// elements exactly, in any order of counting. So an element costs one increment and one look-up.
class Block {
 public:
  // Counts `n` elements under one scale.
  void count(const std::uint8_t* values, std::int64_t n, std::uint8_t scale) {
    Table& table = table_of(scale);
    std::int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
      std::uint64_t eight;
      std::memcpy(&eight, values + i, 8);
      // Neighbours that are equal would wait for each other in one array.
      for (int k = 0; k < 8; k += 2) {
        ++table.counts[0][eight >> (8 * k) & 0xFF];
        ++table.counts[1][eight >> (8 * k + 8) & 0xFF];
      }
    }
    for (; i < n; ++i) ++table.counts[0][values[i]];
  }

  // Once all is counted: the block's scale, and what replaces each value under each scale.
  float close(bool fnuz, BlockConversion& sums) {
    float amax = 0;
    for (std::size_t t = 0; t < used_; ++t) amax = std::max(amax, dequantise(tables_[t], sums));
    const float scale = (amax > 0 ? amax : zero_block_amax) / kE4m3fnMax;
    for (std::size_t t = 0; t < used_; ++t) requantise(tables_[t], scale, fnuz, sums);
    return fnuz ? 2 * scale : scale;
  }

  void replace(std::uint8_t* values, std::int64_t n, std::uint8_t scale) const {
    const auto& codes = tables_[place_[scale]].codes;
    for (std::int64_t i = 0; i < n; ++i) values[i] = codes[values[i]];
  }

  void clear() {
    for (std::size_t t = 0; t < used_; ++t) place_[tables_[t].scale] = unused;
    used_ = 0;
  }

 private:
  struct Table {
    std::uint8_t scale = 0;
    std::array<std::array<std::uint32_t, 256>, 2> counts;
    std::array<float, 128> magnitudes;  // dequantised
    std::array<std::uint8_t, 256> codes;

    std::int64_t count(std::size_t code) const {
      return std::int64_t{counts[0][code]} + counts[1][code];
    }
    std::int64_t count_both_signs(std::size_t magnitude) const {
      return count(magnitude) + count(magnitude | 0x80);
    }
  };
  static constexpr std::uint16_t unused = 256;

  Table& table_of(std::uint8_t scale) {
    if (place_[scale] == unused) {
      if (used_ == tables_.size()) tables_.emplace_back();
      place_[scale] = static_cast<std::uint16_t>(used_);
      Table& table = tables_[used_++];
      table.scale = scale;
      table.counts = {};
    }
    return tables_[place_[scale]];
  }

  // Returns the largest finite magnitude that occurs.
  static float dequantise(Table& table, BlockConversion& sums) {
    float amax = 0;
    for (std::size_t m = 0; m < 128; ++m) {
      const float v = dequantised(static_cast<std::uint8_t>(m), table.scale);
      table.magnitudes[m] = v;
      const std::int64_t count = table.count_both_signs(m);
      if (count == 0) continue;
      if (!std::isfinite(v)) {
        sums.non_finite += count;
      } else {
        amax = std::max(amax, v);
      }
    }
    return amax;
  }

  static void requantise(Table& table, float scale, bool fnuz, BlockConversion& sums) {
    for (std::size_t m = 0; m < 128; ++m) {
      const float v = table.magnitudes[m];
      const std::uint8_t q = float_to_e4m3fn(v / scale);
      const auto negative = static_cast<std::uint8_t>(q | 0x80);
      table.codes[m] = fnuz ? e4m3fn_to_e4m3fnuz_halved(q) : q;
      table.codes[m | 0x80] = fnuz ? e4m3fn_to_e4m3fnuz_halved(negative) : negative;
      const std::int64_t count = table.count_both_signs(m);
      if (count == 0 || !std::isfinite(v)) continue;
      const double difference = double{e4m3fn_to_float(q)} * scale - v;
      sums.difference_squares += static_cast<double>(count) * (difference * difference);
      sums.value_squares += static_cast<double>(count) * (double{v} * v);
    }
  }

  std::array<std::uint16_t, 256> place_ = [] {
    std::array<std::uint16_t, 256> places;
    places.fill(unused);
    return places;
  }();
  std::vector<Table> tables_;
  std::size_t used_ = 0;
};

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

BlockConversion convert_slab(const Slab& slab, const BlockTarget& target, Block& block,
                             float* scales) {
  BlockConversion sums;
  for (std::int64_t begin = 0; begin < slab.cols; begin += target.block_cols) {
    const std::int64_t end = std::min(slab.cols, begin + target.block_cols);
    BlockConversion own;
    block.clear();
    slab.for_each_run(begin, end, [&](const std::uint8_t* run, std::int64_t n, std::uint8_t scale) {
      block.count(run, n, scale);
    });
    *scales++ = block.close(target.fnuz, own);
    if (own.non_finite > 0) own.first_non_finite = slab.first_non_finite(begin, end);
    slab.for_each_run(begin, end, [&](std::uint8_t* run, std::int64_t n, std::uint8_t scale) {
      block.replace(run, n, scale);
    });
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
  struct Worker {
    std::vector<std::uint8_t> values;
    Block block;
  };
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
    own = convert_slab(slab, target, worker.block, scales.data() + i * row_of_scales);
    if (own.first_non_finite >= 0) own.first_non_finite += row * t.cols;
    sink(row * t.cols, worker.values);
  });
  BlockConversion total;
  for (const BlockConversion& own : sums) total += own;
  return total;
}

}  // namespace moegauge
