// Weight decoders by table lookups over whole registers. Every codec narrower than bf16 decodes
// exactly into pairs (k, k + 1) of bf16 values per column, from which either kind of step follows.
// Included inside an AVX-512 level's unnamed namespace after decode_generic.h.

// FP8 by VPERMI2B: the 7 magnitude bits are looked up in two planes of 128 bytes, the upper and the
// lower byte of the bf16 value.
struct Fp8Planes {
  alignas(64) std::uint8_t upper[128], lower[128];
};
// `bias` is the format's, `nan` the magnitude code that is NaN, if one is.
constexpr Fp8Planes make_fp8_planes(std::uint32_t bias, std::uint32_t nan) {
  Fp8Planes p = {};
  for (std::uint32_t code = 0; code < 128; ++code) {
    std::uint32_t bits = 0;  // bf16
    if (code == nan) {
      bits = 0x7FC0;
    } else if (code >= 8) {
      bits = (code << 4) + ((127u - bias) << 7);
    } else if (code > 0) {  // code * 2^(-2 - bias), normalised
      const std::uint32_t lead = code >= 4 ? 2 : code >= 2 ? 1 : 0;
      bits = ((125u - bias + lead) << 7) | ((code << (7 - lead)) & 0x7Fu);
    }
    p.upper[code] = static_cast<std::uint8_t>(bits >> 8);
    p.lower[code] = static_cast<std::uint8_t>(bits & 0xFFu);
  }
  return p;
}
constexpr Fp8Planes kE4m3fn = make_fp8_planes(7, 127);
constexpr Fp8Planes kE4m3fnuz = make_fp8_planes(8, 128);

struct Fp8Order {
  std::uint8_t places[64];
};
// Interleaving the planes' bytes within 128-bit lanes gives pairs: bytes 0-7 of a lane hold four
// columns' k = 0, 1, bytes 8-15 the same columns' k = 2, 3.
constexpr Fp8Order make_fp8_order() {
  Fp8Order o = {};
  for (int c = 0; c < kVector; ++c) {
    for (int k = 0; k < 4; ++k) {
      o.places[c * 4 + k] =
          static_cast<std::uint8_t>(16 * (c / 4) + 8 * (k / 2) + 2 * (c % 4) + k % 2);
    }
  }
  return o;
}
constexpr Fp8Order kFp8Order = make_fp8_order();
constexpr const std::uint8_t* kE4m3Order = kFp8Order.places;

template <WeightCodec kCodec>
MOEGAUGE_INLINE void fp8_pairs(const std::byte* w, U (&pairs)[2]) {
  constexpr const Fp8Planes& planes = kCodec == WeightCodec::e4m3fn ? kE4m3fn : kE4m3fnuz;
  const __m512i sign = _mm512_set1_epi8(static_cast<char>(0x80));
  const __m512i codes = _mm512_loadu_si512(w);
  __m512i upper = _mm512_permutex2var_epi8(_mm512_load_si512(planes.upper), codes,
                                           _mm512_load_si512(planes.upper + 64));
  __m512i lower = _mm512_permutex2var_epi8(_mm512_load_si512(planes.lower), codes,
                                           _mm512_load_si512(planes.lower + 64));
  upper = _mm512_ternarylogic_epi32(upper, codes, sign, 0xF8);  // upper | (codes & 0x80)
  if constexpr (kCodec == WeightCodec::e4m3fnuz) {
    const __mmask64 nan = _mm512_cmpeq_epi8_mask(codes, sign);  // the code of -0 elsewhere
    upper = _mm512_mask_mov_epi8(upper, nan, _mm512_set1_epi8(0x7F));
    lower = _mm512_mask_mov_epi8(lower, nan, sign | _mm512_set1_epi8(0x40));
  }
  pairs[0] = (U)_mm512_unpacklo_epi8(lower, upper);
  pairs[1] = (U)_mm512_unpackhi_epi8(lower, upper);
}

// Nibbles by VPERMW, which reads five bits of each index: the table is there twice, so that the
// lowest bit of the neighbouring nibble does not matter.
struct NibbleTable {
  alignas(64) std::uint16_t bf16[32];
};
constexpr NibbleTable make_nibble_table(WeightCodec codec) {
  constexpr std::uint16_t kSmall[9] = {0,      0x3F80, 0x4000, 0x4040, 0x4080,  // 0 .. 8
                                       0x40A0, 0x40C0, 0x40E0, 0x4100};
  constexpr std::uint16_t kE2m1[8] = {0, 0x3F00, 0x3F80, 0x3FC0, 0x4000, 0x4040, 0x4080, 0x40C0};
  NibbleTable t = {};
  for (int i = 0; i < 32; ++i) {
    const int code = i % 16;
    const bool negative = code >= 8;
    const int magnitude =
        codec == WeightCodec::e2m1 ? kE2m1[code % 8] : kSmall[negative ? 16 - code : code];
    t.bf16[i] = static_cast<std::uint16_t>((negative ? 0x8000 : 0) | magnitude);
  }
  return t;
}
constexpr NibbleTable kInt4 = make_nibble_table(WeightCodec::int4);
constexpr NibbleTable kE2m1 = make_nibble_table(WeightCodec::e2m1);

template <WeightCodec kCodec>
MOEGAUGE_INLINE void nibble_pairs(const std::byte* w, int part, U (&pairs)[2]) {
  const __m512i table = _mm512_load_si512(kCodec == WeightCodec::int4 ? kInt4.bf16 : kE2m1.bf16);
  const __m512i words = _mm512_srli_epi16(_mm512_loadu_si512(w), 8u * static_cast<unsigned>(part));
  pairs[0] = (U)_mm512_permutexvar_epi16(words, table);
  pairs[1] = (U)_mm512_permutexvar_epi16(_mm512_srli_epi16(words, 4), table);
}

MOEGAUGE_INLINE F int8_step(const std::byte* w) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w))));
}
MOEGAUGE_INLINE void int8_pairs(const std::byte* w, U (&pairs)[2]) {
  for (int p = 0; p < 2; ++p) {
    const U low = bits_of(int8_step(w + 2 * p * kVector));
    pairs[p] = (bits_of(int8_step(w + (2 * p + 1) * kVector)) & 0xFFFF'0000u) | low >> 16;
  }
}

// Elements [4 * part, 4 * part + 4) of 64 bytes.
template <WeightCodec kCodec>
MOEGAUGE_INLINE void bf16_pairs(const std::byte* w, int part, U (&pairs)[2]) {
  if constexpr (element_bits(kCodec) == 4) {
    nibble_pairs<kCodec>(w, part, pairs);
  } else if constexpr (kCodec == WeightCodec::int8) {
    int8_pairs(w, pairs);
  } else {
    fp8_pairs<kCodec>(w, pairs);
  }
}

template <WeightCodec kCodec, DotUnit kUnit>
MOEGAUGE_INLINE void decode_run(const std::byte* w, int column, int part,
                                F (&steps)[part_steps<kCodec, kUnit>]) {
  if constexpr (kCodec == WeightCodec::fp16) {
    const auto* halves = reinterpret_cast<const __m256i*>(w);
    steps[0] = _mm512_cvtph_ps(_mm256_loadu_si256(halves));
    steps[1] = _mm512_cvtph_ps(_mm256_loadu_si256(halves + 1));
  } else if constexpr (kCodec == WeightCodec::bf16) {
    generic_run<kCodec, kUnit>(w, column, part, steps);
  } else if constexpr (kCodec == WeightCodec::int8 && kUnit == DotUnit::fp32) {
    for (int k = 0; k < 4; ++k) steps[k] = int8_step(w + k * kVector);
  } else {
    U pairs[2];
    bf16_pairs<kCodec>(w, part, pairs);
    if constexpr (kUnit == DotUnit::bf16_pair) {
      for (int p = 0; p < 2; ++p) steps[p] = float_of(pairs[p]);
    } else {
      for (int p = 0; p < 2; ++p) {
        steps[2 * p] = float_of(pairs[p] << 16);
        steps[2 * p + 1] = float_of(pairs[p] & 0xFFFF'0000u);
      }
    }
  }
}

// Most rows that decode in registers at a time: their sums, the decoded weights and the decoding
// constants must fit 32 of them.
template <WeightCodec kCodec>
constexpr int fused_most = element_bits(kCodec) < 16 ? 8 : kRowBlock;
// With more rows a panel is cheaper; where a step is what lies in memory it never is.
template <WeightCodec kCodec, DotUnit kUnit>
constexpr std::int64_t fused_limit =
    kCodec == WeightCodec::bf16&& kUnit == DotUnit::bf16_pair ? INT64_MAX : fused_most<kCodec>;
