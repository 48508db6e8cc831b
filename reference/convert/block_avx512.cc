#include "reference/convert/block_avx512.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <array>
#include <cmath>
#include <cstddef>

#include "reference/formats/e8m0.h"
#include "reference/formats/fp8.h"

namespace moegauge {

#ifdef __x86_64__
// No templates of others are instantiated in what is compiled for another processor: decision 0003.
#define MOEGAUGE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi")))

namespace {

// Scales under which every product is a normal number in bf16, and the block's scale in fp32.
constexpr std::uint8_t lowest_scale = 24, highest_scale = 230;
constexpr std::size_t group_slots = 4;

// magnitudes[m] * group_scale / scale as E4M3FN, m < 128: encode() of block_tables.cc, 16 at once.
MOEGAUGE_AVX512 void encode_table(float group_scale, float scale, std::uint8_t* codes) {
  constexpr std::int32_t rebias = 127 - 7, magic = (rebias - 2 + 23) << 23;
  const __m512 divisor = _mm512_set1_ps(scale), factor = _mm512_set1_ps(group_scale);
  for (std::size_t m = 0; m < 128; m += 16) {
    const __m512 v = _mm512_mul_ps(_mm512_loadu_ps(kE4m3fnValues.data() + m), factor);
    const __m512 x = _mm512_min_ps(_mm512_div_ps(v, divisor), _mm512_set1_ps(kE4m3fnMax));
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 20), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7'FFFF)), odd);
    const __m512i normal =
        _mm512_sub_epi32(_mm512_srli_epi32(rounded, 20), _mm512_set1_epi32(rebias << 3));
    const __m512i lifted =
        _mm512_castps_si512(_mm512_add_ps(x, _mm512_castsi512_ps(_mm512_set1_epi32(magic))));
    const __m512i subnormal = _mm512_sub_epi32(lifted, _mm512_set1_epi32(magic));
    const __mmask16 small = _mm512_cmplt_epi32_mask(bits, _mm512_set1_epi32((rebias + 1) << 23));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + m),
                     _mm512_cvtepi32_epi8(_mm512_mask_blend_epi32(small, normal, subnormal)));
  }
}

// Sums in fp32 over a row, in fp64 beyond it.
struct Sums {
  __m512 differences, values;
};

// 16 magnitudes as codes; E4M3's bits are those of fp16 times 2^-8, subnormals too.
MOEGAUGE_AVX512 inline __m512 as_floats(__m128i magnitudes) {
  return _mm512_cvtph_ps(_mm256_slli_epi16(_mm256_cvtepu8_epi16(magnitudes), 7));
}

MOEGAUGE_AVX512 inline void add_differences(__m256i before, __m256i after, __m512 factor,
                                            __m512 scale, Sums& sums) {
  for (int half = 0; half < 2; ++half) {
    const __m128i m =
        half == 0 ? _mm256_castsi256_si128(before) : _mm256_extracti128_si256(before, 1);
    const __m128i q =
        half == 0 ? _mm256_castsi256_si128(after) : _mm256_extracti128_si256(after, 1);
    const __m512 v = _mm512_mul_ps(as_floats(m), factor);
    const __m512 d = _mm512_fmsub_ps(as_floats(q), scale, v);
    sums.differences = _mm512_fmadd_ps(d, d, sums.differences);
    sums.values = _mm512_fmadd_ps(v, v, sums.values);
  }
}

MOEGAUGE_AVX512 inline double total(__m512d sum) { return _mm512_reduce_add_pd(sum); }

MOEGAUGE_AVX512 inline __m512d widened(__m512 sum) {
  return _mm512_add_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(sum)),
                       _mm512_cvtps_pd(_mm512_extractf32x8_ps(sum, 1)));
}

class Converter final : public BlockAvx512 {
 public:
  std::optional<float> convert(const GroupedBlock& block, bool fnuz,
                               BlockConversion& sums) override {
    find_maxima(block);
    const float amax = largest();
    std::optional<float> scale;
    if (amax > 0) {
      scale = amax / kE4m3fnMax;
      replace(block, *scale, fnuz, sums);
      if (fnuz) *scale *= 2;
    }
    for (std::size_t i = 0; i < used_; ++i) maximum_of(scales_[i]) = {};
    used_ = 0;
    return scale;
  }

 private:
  // The largest magnitude of each lane of the groups under one scale. Neighbouring groups have
  // slots of their own, so that none waits for the one before it.
  struct alignas(32) Maximum {
    std::array<std::array<std::uint8_t, 32>, group_slots> slots = {};
  };
  Maximum& maximum_of(std::uint8_t scale) { return maxima_[scale]; }

  MOEGAUGE_AVX512 void find_maxima(const GroupedBlock& block) {
    const __m256i magnitude = _mm256_set1_epi8(0x7F);
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const std::uint8_t* values = block.values + r * block.row_stride;
      const std::uint8_t* scales = block.scales + r * block.scale_stride;
      for (std::int64_t g = 0; g < block.groups; ++g) {
        if (!seen_[scales[g]]) see(scales[g]);
        auto* slot = reinterpret_cast<__m256i*>(
            maxima_[scales[g]].slots[static_cast<std::size_t>(g) % group_slots].data());
        const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + g * 32));
        _mm256_store_si256(
            slot, _mm256_max_epu8(_mm256_load_si256(slot), _mm256_and_si256(v, magnitude)));
      }
    }
  }

  void see(std::uint8_t scale) {
    seen_[scale] = 1;
    scales_[used_++] = scale;
  }

  // The block's amax; 0 where it is to be counted. Forgets which scales were seen.
  float largest() {
    float amax = 0;
    bool fits = true;
    for (std::size_t i = 0; i < used_; ++i) {
      const std::uint8_t scale = scales_[i];
      seen_[scale] = 0;
      std::uint8_t code = 0;
      for (const auto& slot : maximum_of(scale).slots) {
        for (const std::uint8_t lane : slot) code = lane > code ? lane : code;
      }
      fits = fits && code < 0x7F && scale >= lowest_scale && scale <= highest_scale;
      const float largest = kE4m3fnValues[code] * e8m0_to_float(scale);
      amax = largest > amax ? largest : amax;
    }
    return fits ? amax : 0;
  }

  MOEGAUGE_AVX512 void replace(const GroupedBlock& block, float scale, bool fnuz,
                               BlockConversion& sums) {
    // Sums are taken in units of 2^exponent, so that no square overflows; 2^8 is as_floats' own.
    const int exponent = std::ilogb(scale);
    for (std::size_t i = 0; i < used_; ++i) {
      const std::uint8_t group = scales_[i];
      encode_table(e8m0_to_float(group), scale, codes_[group].data());
      factors_[group] = std::ldexp(1.0f, group - 127 + 8 - exponent);
    }
    const __m512 unit_scale = _mm512_set1_ps(std::ldexp(scale, 8 - exponent));
    __m512d differences = _mm512_setzero_pd(), squares = _mm512_setzero_pd();
    for (std::int64_t r = 0; r < block.rows; ++r) {
      Sums row = {_mm512_setzero_ps(), _mm512_setzero_ps()};
      replace_row(block.values + r * block.row_stride, block.scales + r * block.scale_stride,
                  block.groups, unit_scale, fnuz, row);
      differences = _mm512_add_pd(differences, widened(row.differences));
      squares = _mm512_add_pd(squares, widened(row.values));
    }
    sums.difference_squares += std::ldexp(total(differences), 2 * exponent);
    sums.value_squares += std::ldexp(total(squares), 2 * exponent);
  }

  MOEGAUGE_AVX512 void replace_row(std::uint8_t* values, const std::uint8_t* scales,
                                   std::int64_t groups, __m512 unit_scale, bool fnuz, Sums& row) {
    const __m256i magnitude = _mm256_set1_epi8(0x7F);
    for (std::int64_t g = 0; g < groups; ++g) {
      auto* at = reinterpret_cast<__m256i*>(values + g * 32);
      const std::uint8_t* codes = codes_[scales[g]].data();
      const __m256i v = _mm256_loadu_si256(at);
      // The index's top bit, which is the sign, is not looked at.
      const __m256i q = _mm512_castsi512_si256(_mm512_permutex2var_epi8(
          _mm512_load_si512(codes), _mm512_castsi256_si512(v), _mm512_load_si512(codes + 64)));
      __m256i sign = _mm256_andnot_si256(magnitude, v);
      // FNUZ has no -0.
      if (fnuz) sign = _mm256_maskz_mov_epi8(_mm256_test_epi8_mask(q, q), sign);
      _mm256_storeu_si256(at, _mm256_or_si256(q, sign));
      add_differences(_mm256_and_si256(v, magnitude), q, _mm512_set1_ps(factors_[scales[g]]),
                      unit_scale, row);
    }
  }

  std::array<Maximum, 256> maxima_;
  struct alignas(64) Codes : std::array<std::uint8_t, 128> {};
  std::array<Codes, 256> codes_;
  std::array<float, 256> factors_ = {};
  std::array<std::uint8_t, 256> seen_ = {}, scales_ = {};
  std::size_t used_ = 0;
};

}  // namespace

std::unique_ptr<BlockAvx512> BlockAvx512::make() {
  if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vbmi"))
    return nullptr;
  return std::make_unique<Converter>();
}

#else

std::unique_ptr<BlockAvx512> BlockAvx512::make() { return nullptr; }

#endif

}  // namespace moegauge
