// E4M3 by table: VPERMI2B looks the 7 magnitude bits up in two planes of 128 bytes, the upper and
// the lower byte of the bf16 value, which is exact for every code, NaN included. Included inside an
// AVX-512 level's unnamed namespace after decode_generic.h.

struct E4m3Planes {
  alignas(64) std::uint8_t upper[128], lower[128];
  // Place of (column, k) so that interleaving the planes' bytes within 128-bit lanes gives, per
  // column, the pair (k, k + 1) of bf16 values: bytes 0-7 of a lane hold four columns' k = 0, 1,
  // bytes 8-15 the same columns' k = 2, 3.
  std::uint8_t order[64];
};
constexpr E4m3Planes make_e4m3_planes() {
  E4m3Planes p = {};
  for (std::uint32_t code = 0; code < 128; ++code) {
    std::uint32_t bits = 0;  // bf16
    if (code == 127) {
      bits = 0x7FC0;
    } else if (code >= 8) {
      bits = (code << 4) + (120u << 7);
    } else if (code > 0) {  // code * 2^-9, normalised
      const std::uint32_t lead = code >= 4 ? 2 : code >= 2 ? 1 : 0;
      bits = ((127u - 9u + lead) << 7) | ((code << (7 - lead)) & 0x7Fu);
    }
    p.upper[code] = static_cast<std::uint8_t>(bits >> 8);
    p.lower[code] = static_cast<std::uint8_t>(bits & 0xFFu);
  }
  for (int c = 0; c < kVector; ++c) {
    for (int k = 0; k < 4; ++k) {
      p.order[c * 4 + k] =
          static_cast<std::uint8_t>(16 * (c / 4) + 8 * (k / 2) + 2 * (c % 4) + k % 2);
    }
  }
  return p;
}
constexpr E4m3Planes kE4m3 = make_e4m3_planes();
constexpr const std::uint8_t* kE4m3Order = kE4m3.order;

// Two vectors of (k, k + 1) bf16 pairs from 64 codes.
MOEGAUGE_INLINE void e4m3_pairs(const std::byte* w, U (&pairs)[2]) {
  const __m512i codes = _mm512_loadu_si512(w);
  __m512i upper = _mm512_permutex2var_epi8(_mm512_load_si512(kE4m3.upper), codes,
                                           _mm512_load_si512(kE4m3.upper + 64));
  const __m512i lower = _mm512_permutex2var_epi8(_mm512_load_si512(kE4m3.lower), codes,
                                                 _mm512_load_si512(kE4m3.lower + 64));
  // upper | (codes & 0x80)
  upper = _mm512_ternarylogic_epi32(upper, codes, _mm512_set1_epi8(static_cast<char>(0x80)), 0xF8);
  pairs[0] = (U)_mm512_unpacklo_epi8(lower, upper);
  pairs[1] = (U)_mm512_unpackhi_epi8(lower, upper);
}

template <>
MOEGAUGE_INLINE void decode_run<WeightCodec::e4m3fn, DotUnit::fp32>(const std::byte* w, int,
                                                                    F (&steps)[4]) {
  U pairs[2];
  e4m3_pairs(w, pairs);
  steps[0] = float_of(pairs[0] << 16);
  steps[1] = float_of(pairs[0] & 0xFFFF'0000u);
  steps[2] = float_of(pairs[1] << 16);
  steps[3] = float_of(pairs[1] & 0xFFFF'0000u);
}

template <>
MOEGAUGE_INLINE void decode_run<WeightCodec::e4m3fn, DotUnit::bf16_pair>(const std::byte* w, int,
                                                                         F (&steps)[2]) {
  U pairs[2];
  e4m3_pairs(w, pairs);
  steps[0] = float_of(pairs[0]);
  steps[1] = float_of(pairs[1]);
}

template <>
MOEGAUGE_INLINE void decode_run<WeightCodec::fp16, DotUnit::fp32>(const std::byte* w, int,
                                                                  F (&steps)[2]) {
  const auto* halves = reinterpret_cast<const __m256i*>(w);
  steps[0] = _mm512_cvtph_ps(_mm256_loadu_si256(halves));
  steps[1] = _mm512_cvtph_ps(_mm256_loadu_si256(halves + 1));
}

// Most rows whose sums, decoded weights and decoding constants fit 32 registers.
template <WeightCodec kCodec>
constexpr int fused_most = kCodec == WeightCodec::e4m3fn ? 8 : kRowBlock;

// Codecs that are decoded to packed bf16 before many rows go over them.
template <WeightCodec kCodec>
constexpr bool transcoded = kCodec == WeightCodec::e4m3fn;

// `count` runs of 64 bytes, `vectors` side by side -> the bf16 runs of the same elements.
template <WeightCodec kCodec>
void transcode(const std::byte* w, std::int64_t count, int vectors, std::byte* out) {
  for (std::int64_t i = 0; i < count; i += vectors, out += vectors * 128) {
    for (int v = 0; v < vectors; ++v, w += 64) {
      U pairs[2];
      e4m3_pairs(w, pairs);
      store_as(out + v * 64, pairs[0]);
      store_as(out + (vectors + v) * 64, pairs[1]);
    }
  }
}
