// Weight decoders by table lookups over whole registers. Every codec narrower than bf16 decodes
// exactly into pairs (k, k + 1) of bf16 values per column, from which either kind of step follows.
// Included inside an AVX-512 level's unnamed namespace after decode_generic.h.

// FP8 codes are packed recoded, so that almost all decode in two operations for 64 of them:
//   bits 7-4  the lowest bit of the value's fp32 exponent E and the three bits of its mantissa,
//             which is the lower byte of the value as bf16;
//   bit 3     the sign;
//   bits 2-0  E / 2 modulo 8, from which the upper byte is looked up: E / 2 is in 60..67.
// The few magnitudes with a smaller E, and NaN, take the places that are left over and are rare:
// what holds one is marked when it is packed, and decoded by Fp8Planes.
struct Fp8Codes {
  std::uint8_t recoded[256], rare[256];
  alignas(64) std::uint8_t upper[64];  // by the lower six bits of a code
};
constexpr int kFp8Classes = 60;  // the smallest E / 2

// bf16 bits of a magnitude. `bias` is the format's, `nan` the magnitude code that is NaN, if one
// is.
constexpr std::uint32_t fp8_as_bf16(std::uint32_t code, std::uint32_t bias, std::uint32_t nan) {
  if (code == nan) return 0x7FC0;
  if (code >= 8) return (code << 4) + ((127u - bias) << 7);
  if (code == 0) return 0;
  const std::uint32_t lead = code >= 4 ? 2 : code >= 2 ? 1 : 0;  // code * 2^(-2 - bias), normalised
  return ((125u - bias + lead) << 7) | ((code << (7 - lead)) & 0x7Fu);
}
constexpr bool fp8_is_rare(std::uint32_t bf16) {
  return bf16 >> 8 < kFp8Classes || bf16 >> 8 >= kFp8Classes + 8;
}
constexpr std::uint8_t fp8_recoded(std::uint32_t bf16) {
  return static_cast<std::uint8_t>((bf16 & 0xF0u) | (bf16 >> 8 & 7u));
}
constexpr Fp8Codes make_fp8_codes(std::uint32_t bias, std::uint32_t nan) {
  Fp8Codes c = {};
  bool taken[256] = {};
  for (std::uint32_t pass = 0; pass < 2; ++pass) {
    const bool rare = pass == 1;  // after all others have their places
    for (std::uint32_t code = 0; code < 128; ++code) {
      const std::uint32_t bf16 = fp8_as_bf16(code, bias, nan);
      if (fp8_is_rare(bf16) != rare) continue;
      std::uint32_t place = rare ? 0 : fp8_recoded(bf16);
      while (rare && (taken[place] || (place & 8u) != 0)) ++place;
      taken[place] = true;
      for (std::uint32_t sign = 0; sign < 2; ++sign) {
        c.recoded[code | sign << 7] = static_cast<std::uint8_t>(place | sign << 3);
        c.rare[code | sign << 7] = rare;
      }
    }
  }
  c.rare[128] |= nan > 127;  // FNUZ: the code of -0 elsewhere is NaN
  for (std::uint32_t i = 0; i < 64; ++i) {
    const std::uint32_t of_class = i & 7u;
    const std::uint32_t upper = of_class < 4 ? 64 + of_class : 56 + of_class;
    c.upper[i] = static_cast<std::uint8_t>((i & 8u) << 4 | upper);
  }
  return c;
}
constexpr Fp8Codes kE4m3fnCodes = make_fp8_codes(7, 127);
constexpr Fp8Codes kE4m3fnuzCodes = make_fp8_codes(8, 128);

// All codes by VPERMI2B: the 7 magnitude bits of a recoded one are looked up in two planes of 128
// bytes, the upper and the lower byte of the bf16 value.
struct Fp8Planes {
  alignas(64) std::uint8_t upper[128], lower[128];
};
constexpr Fp8Planes make_fp8_planes(const Fp8Codes& codes, std::uint32_t bias, std::uint32_t nan) {
  Fp8Planes p = {};
  for (std::uint32_t code = 0; code < 128; ++code) {
    const std::uint32_t bf16 = fp8_as_bf16(code, bias, nan);
    const std::uint32_t place = codes.recoded[code];
    const std::uint32_t index = (place >> 1 & 0x78u) | (place & 7u);
    p.upper[index] = static_cast<std::uint8_t>(bf16 >> 8);
    p.lower[index] = static_cast<std::uint8_t>(bf16 & 0xFFu);
  }
  return p;
}
constexpr Fp8Planes kE4m3fn = make_fp8_planes(kE4m3fnCodes, 7, 127);
constexpr Fp8Planes kE4m3fnuz = make_fp8_planes(kE4m3fnuzCodes, 8, 128);

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
template <WeightCodec kCodec>
constexpr bool has_rare_codes = kCodec == WeightCodec::e4m3fn || kCodec == WeightCodec::e4m3fnuz;
constexpr WeightLayout fp8_layout(WeightCodec codec) {
  const Fp8Codes& codes = codec == WeightCodec::e4m3fn ? kE4m3fnCodes : kE4m3fnuzCodes;
  return {.element_bits = 8,
          .run = 4,
          .order = kFp8Order.places,
          .recoded = codes.recoded,
          .rare = codes.rare};
}

struct Fp8Bytes {
  __m512i lower, upper;  // of bf16 values
};
template <WeightCodec kCodec>
MOEGAUGE_INLINE Fp8Bytes all_fp8_bytes(__m512i codes) {
  constexpr const Fp8Planes& planes = kCodec == WeightCodec::e4m3fn ? kE4m3fn : kE4m3fnuz;
  const __m512i sign = _mm512_set1_epi8(static_cast<char>(0x80));
  // (codes >> 1 & 0x78) | (codes & 7): the bits of a neighbour are not selected.
  const __m512i index =
      _mm512_ternarylogic_epi32(_mm512_set1_epi8(7), codes, _mm512_srli_epi16(codes, 1), 0xCA);
  __m512i upper = _mm512_permutex2var_epi8(_mm512_load_si512(planes.upper), index,
                                           _mm512_load_si512(planes.upper + 64));
  __m512i lower = _mm512_permutex2var_epi8(_mm512_load_si512(planes.lower), index,
                                           _mm512_load_si512(planes.lower + 64));
  upper = _mm512_ternarylogic_epi32(upper, _mm512_slli_epi16(codes, 4), sign, 0xF8);
  if constexpr (kCodec == WeightCodec::e4m3fnuz) {
    const __m512i minus_zero = _mm512_set1_epi8(static_cast<char>(kE4m3fnuzCodes.recoded[128]));
    const __mmask64 nan = _mm512_cmpeq_epi8_mask(codes, minus_zero);
    upper = _mm512_mask_mov_epi8(upper, nan, _mm512_set1_epi8(0x7F));
    lower = _mm512_mask_mov_epi8(lower, nan, _mm512_set1_epi8(static_cast<char>(0xC0)));
  }
  return {lower, upper};
}

template <WeightCodec kCodec, bool kRare>
MOEGAUGE_INLINE void fp8_pairs(const std::byte* w, U (&pairs)[2]) {
  constexpr const Fp8Codes& table = kCodec == WeightCodec::e4m3fn ? kE4m3fnCodes : kE4m3fnuzCodes;
  const __m512i codes = _mm512_loadu_si512(w);
  Fp8Bytes bytes;
  if constexpr (kRare) {
    bytes = all_fp8_bytes<kCodec>(codes);
  } else {
    bytes = {codes & _mm512_set1_epi8(static_cast<char>(0xF0)),
             _mm512_permutexvar_epi8(codes, _mm512_load_si512(table.upper))};
  }
  pairs[0] = (U)_mm512_unpacklo_epi8(bytes.lower, bytes.upper);
  pairs[1] = (U)_mm512_unpackhi_epi8(bytes.lower, bytes.upper);
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

// The same into fp32. VPERMPS reads the lowest four bits of a 32-bit word, VPERMW those of its
// upper half, so that one shift serves two steps.
struct NibbleFloats {
  alignas(64) std::uint32_t fp32[16];
};
constexpr NibbleFloats make_nibble_floats(const NibbleTable& table) {
  NibbleFloats t = {};
  for (int i = 0; i < 16; ++i) t.fp32[i] = std::uint32_t{table.bf16[i]} << 16;
  return t;
}
constexpr NibbleFloats kInt4Floats = make_nibble_floats(kInt4);
constexpr NibbleFloats kE2m1Floats = make_nibble_floats(kE2m1);

template <WeightCodec kCodec>
MOEGAUGE_INLINE void nibble_steps(const std::byte* w, int part, F (&steps)[4]) {
  constexpr bool kInt = kCodec == WeightCodec::int4;
  const __m512i halves = _mm512_load_si512(kInt ? kInt4.bf16 : kE2m1.bf16);
  const __m512i floats = _mm512_load_si512(kInt ? kInt4Floats.fp32 : kE2m1Floats.fp32);
  const __m512i codes = _mm512_loadu_si512(w);
  for (int p = 0; p < 2; ++p) {
    const __m512i words = _mm512_srli_epi32(codes, static_cast<unsigned>(8 * part + 4 * p));
    steps[2 * p] = (F)_mm512_permutexvar_epi32(words, floats);
    steps[2 * p + 1] = (F)_mm512_maskz_permutexvar_epi16(0xAAAA'AAAAu, words, halves);
  }
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
template <WeightCodec kCodec, bool kRare>
MOEGAUGE_INLINE void bf16_pairs(const std::byte* w, int part, U (&pairs)[2]) {
  if constexpr (element_bits(kCodec) == 4) {
    nibble_pairs<kCodec>(w, part, pairs);
  } else if constexpr (kCodec == WeightCodec::int8) {
    int8_pairs(w, pairs);
  } else {
    fp8_pairs<kCodec, kRare>(w, pairs);
  }
}

template <WeightCodec kCodec, DotUnit kUnit, bool kRare>
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
  } else if constexpr (element_bits(kCodec) == 4 && kUnit == DotUnit::fp32) {
    nibble_steps<kCodec>(w, part, steps);
  } else {
    U pairs[2];
    bf16_pairs<kCodec, kRare>(w, part, pairs);
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
