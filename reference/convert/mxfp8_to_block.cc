#include "reference/convert/mxfp8_to_block.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
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

void look_up_portable(const std::array<std::uint8_t, 256>& table, std::uint8_t* values,
                      std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int k = 0; k < 8; ++k) values[i + k] = table[values[i + k]];
  }
  for (; i < n; ++i) values[i] = table[values[i]];
}

#ifdef __x86_64__
// 64 look-ups at once: one permutation for each half of the table, the value's top bit chooses.
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) void look_up_vbmi(
    const std::array<std::uint8_t, 256>& table, std::uint8_t* values, std::int64_t n) {
  const __m512i t0 = _mm512_loadu_si512(table.data()), t1 = _mm512_loadu_si512(table.data() + 64),
                t2 = _mm512_loadu_si512(table.data() + 128),
                t3 = _mm512_loadu_si512(table.data() + 192);
  for (std::int64_t i = 0; i < n; i += 64) {
    const std::int64_t left = n - i;
    const __mmask64 live = left >= 64 ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
    const __m512i v = _mm512_maskz_loadu_epi8(live, values + i);
    const __m512i low = _mm512_permutex2var_epi8(t0, v, t1);
    const __m512i high = _mm512_permutex2var_epi8(t2, v, t3);
    _mm512_mask_storeu_epi8(values + i, live,
                            _mm512_mask_blend_epi8(_mm512_movepi8_mask(v), low, high));
  }
}
#endif

using LookUp = void (*)(const std::array<std::uint8_t, 256>&, std::uint8_t*, std::int64_t);

LookUp best_look_up() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi")) {
    return look_up_vbmi;
  }
#endif
  return look_up_portable;
}

// values[i] = table[values[i]]; only bytes are moved, so every way gives the same.
void look_up(const std::array<std::uint8_t, 256>& table, std::uint8_t* values, std::int64_t n) {
  static const LookUp best = best_look_up();
  best(table, values, n);
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
    // Increments of one counter wait for each other, so neighbours have counters of their own.
    for (; i + lanes <= n; i += lanes) {
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        ++table.counts[static_cast<std::size_t>(lane)][values[i + lane]];
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
    look_up(tables_[place_[scale]].codes, values, n);
  }

  void clear() {
    for (std::size_t t = 0; t < used_; ++t) place_[tables_[t].scale] = unused;
    used_ = 0;
  }

 private:
  static constexpr std::int64_t lanes = 8;

  struct Table {
    std::uint8_t scale = 0;
    std::array<std::array<std::uint32_t, 256>, lanes> counts;
    std::array<float, 128> magnitudes;  // dequantised
    std::array<std::uint8_t, 256> codes;

    std::int64_t count_both_signs(std::size_t magnitude) const {
      return std::int64_t{counts[0][magnitude]} + counts[0][magnitude | 0x80];
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
    for (std::size_t lane = 1; lane < lanes; ++lane) {
      for (std::size_t code = 0; code < 256; ++code) {
        table.counts[0][code] += table.counts[lane][code];
      }
    }
    const float group_scale = e8m0_to_float(table.scale);
    for (std::size_t m = 0; m < 128; ++m) {
      table.magnitudes[m] = bf16_to_float(float_to_bf16(kE4m3fnValues[m] * group_scale));
    }
    float amax = 0;
    for (std::size_t m = 0; m < 128; ++m) {
      const std::int64_t count = table.count_both_signs(m);
      if (count == 0) continue;
      if (std::isfinite(table.magnitudes[m])) {
        amax = table.magnitudes[m];  // they ascend
      } else {
        sums.non_finite += count;
      }
    }
    return amax;
  }

  static void requantise(Table& table, float scale, bool fnuz, BlockConversion& sums) {
    std::array<std::uint8_t, 128> q;
    encode(table.magnitudes, scale, q);
    for (std::size_t m = 0; m < 128; ++m) {
      const auto negative = static_cast<std::uint8_t>(q[m] | 0x80);
      table.codes[m] = fnuz ? e4m3fn_to_e4m3fnuz_halved(q[m]) : q[m];
      table.codes[m | 0x80] = fnuz ? e4m3fn_to_e4m3fnuz_halved(negative) : negative;
    }
    for (std::size_t m = 0; m < 128; ++m) {
      const std::int64_t count = table.count_both_signs(m);
      const float v = table.magnitudes[m];
      if (count == 0 || !std::isfinite(v)) continue;
      const double difference = double{kE4m3fnValues[q[m]]} * scale - v;
      sums.difference_squares += static_cast<double>(count) * (difference * difference);
      sums.value_squares += static_cast<double>(count) * (double{v} * v);
    }
  }

  // float_to_e4m3fn(v / scale) for v >= 0 or NaN, without branches, so that compilers use vectors.
  static void encode(const std::array<float, 128>& magnitudes, float scale,
                     std::array<std::uint8_t, 128>& q) {
    constexpr std::int32_t rebias = 127 - 7, magic = (rebias - 2 + 23) << 23;
    std::array<std::int32_t, 128> wide;
    for (std::size_t m = 0; m < 128; ++m) {
      const float x = magnitudes[m] / scale;
      const float clamped = x < kE4m3fnMax ? x : kE4m3fnMax;
      const auto bits = std::bit_cast<std::int32_t>(clamped);
      const std::int32_t normal = ((bits + 0x7'FFFF + ((bits >> 20) & 1)) >> 20) - (rebias << 3);
      const std::int32_t subnormal =
          std::bit_cast<std::int32_t>(clamped + std::bit_cast<float>(magic)) - magic;
      wide[m] = bits < (rebias + 1) << 23 ? subnormal : normal;
    }
    for (std::size_t m = 0; m < 128; ++m) {
      q[m] = std::isnan(magnitudes[m]) ? std::uint8_t{0x7F} : static_cast<std::uint8_t>(wide[m]);
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
