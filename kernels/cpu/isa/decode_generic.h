// Weight decoders in terms of vec.h. Included inside each level's unnamed namespace, which then
// defines has_rare_codes, fp8_layout and decode_run: by generic_run, or in a better way.

constexpr int element_bits(WeightCodec codec) {
  switch (codec) {
    case WeightCodec::bf16:
    case WeightCodec::fp16:
      return 16;
    case WeightCodec::int4:
    case WeightCodec::e2m1:
      return 4;
    default:
      return 8;
  }
}
// Elements of one column in 64 bytes of a vector, and how many of those are decoded at a time.
template <WeightCodec kCodec>
constexpr int run_length = 32 / element_bits(kCodec);
template <WeightCodec kCodec>
constexpr int part_length = run_length<kCodec> < 4 ? run_length<kCodec> : 4;
template <WeightCodec kCodec, DotUnit kUnit>
constexpr int part_steps = part_length<kCodec> / elements_per_step(kUnit);

constexpr std::uint8_t kPairs[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                     11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                     22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
struct Orders {
  std::uint8_t by_run2[32], by_run4[64];  // place = k * 16 + column
  // A column's eight nibbles lie in one 32-bit word, even k in its lower half and odd k in its
  // upper: shifting both halves by 4 p bits brings the pair (2 p, 2 p + 1) to their bottoms.
  std::uint8_t nibbles[128];
};
constexpr Orders make_orders() {
  Orders o = {};
  for (int c = 0; c < kVector; ++c) {
    for (int k = 0; k < 2; ++k) o.by_run2[c * 2 + k] = static_cast<std::uint8_t>(k * 16 + c);
    for (int k = 0; k < 4; ++k) o.by_run4[c * 4 + k] = static_cast<std::uint8_t>(k * 16 + c);
    for (int k = 0; k < 8; ++k) {
      o.nibbles[c * 8 + k] = static_cast<std::uint8_t>(c * 8 + k % 2 * 4 + k / 2);
    }
  }
  return o;
}
constexpr Orders kOrders = make_orders();

// Element k of each of L columns' words.
MOEGAUGE_INLINE U nibbles(U words, int k) { return words >> (k % 2 * 16 + k / 2 * 4) & 15u; }

// Columns [column, column + L) of 64 packed bytes of one vector -> the steps of their elements
// [part * part_length, (part + 1) * part_length).
template <WeightCodec kCodec, DotUnit kUnit>
MOEGAUGE_INLINE void generic_run(const std::byte* w, int column, int part,
                                 F (&steps)[part_steps<kCodec, kUnit>]) {
  if constexpr (kCodec == WeightCodec::bf16 && kUnit == DotUnit::bf16_pair) {
    steps[0] = load_as<F>(w + 4 * column);  // a step is what lies in memory
  } else if constexpr (kCodec == WeightCodec::bf16) {
    const U pair = load_as<U>(w + 4 * column);
    steps[0] = float_of(pair << 16);
    steps[1] = float_of(pair & 0xFFFF'0000u);
  } else if constexpr (kCodec == WeightCodec::fp16) {
    for (int k = 0; k < 2; ++k) {
      steps[k] = fp16_value(__builtin_convertvector(load_as<H>(w + 2 * (k * kVector + column)), U));
    }
  } else if constexpr (element_bits(kCodec) == 4) {
    const U words = load_as<U>(w + 4 * column);
    for (int k = 0; k < 4; ++k) {
      const U code = nibbles(words, part * 4 + k);
      steps[k] = kCodec == WeightCodec::int4 ? int4_value(code) : e2m1_value(code);
    }
  } else {
    for (int k = 0; k < 4; ++k) {
      const U code = __builtin_convertvector(load_as<B>(w + k * kVector + column), U);
      steps[k] = kCodec == WeightCodec::e4m3fn     ? e4m3fn_value(code)
                 : kCodec == WeightCodec::e4m3fnuz ? e4m3fnuz_value(code)
                                                   : int8_value(code);
    }
  }
}

// kRare: codes may be rare (WeightLayout::rare).
template <WeightCodec kCodec, DotUnit kUnit, bool kRare>
MOEGAUGE_INLINE void decode_run(const std::byte* w, int column, int part,
                                F (&steps)[part_steps<kCodec, kUnit>]);
