#include "reference/convert/counted_block.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cmath>

#include "reference/formats/bf16.h"
#include "reference/formats/e8m0.h"
#include "reference/formats/fp8.h"

namespace moegauge {
namespace {

constexpr float zero_block_amax = 1e-10f;

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

// float_to_e4m3fn(v / scale) for v >= 0 or NaN, without branches, so that compilers use vectors.
void encode(const std::array<float, 128>& magnitudes, float scale,
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

}  // namespace

void CountedBlock::count(const std::uint8_t* values, std::int64_t n, std::uint8_t scale) {
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

float CountedBlock::close(bool fnuz, BlockConversion& sums) {
  float amax = 0;
  for (std::size_t t = 0; t < used_; ++t) amax = std::max(amax, dequantise(tables_[t], sums));
  const float scale = (amax > 0 ? amax : zero_block_amax) / kE4m3fnMax;
  for (std::size_t t = 0; t < used_; ++t) requantise(tables_[t], scale, fnuz, sums);
  return fnuz ? 2 * scale : scale;
}

void CountedBlock::replace(std::uint8_t* values, std::int64_t n, std::uint8_t scale) const {
  look_up(tables_[place_[scale]].codes, values, n);
}

void CountedBlock::clear() {
  for (std::size_t t = 0; t < used_; ++t) place_[tables_[t].scale] = unused;
  used_ = 0;
}

CountedBlock::Table& CountedBlock::table_of(std::uint8_t scale) {
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
float CountedBlock::dequantise(Table& table, BlockConversion& sums) {
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

void CountedBlock::requantise(Table& table, float scale, bool fnuz, BlockConversion& sums) {
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

}  // namespace moegauge
