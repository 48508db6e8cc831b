// Weight decoders in terms of vec.h. Included inside each level's unnamed namespace; a level with a
// better way for a codec overloads decode_run for it afterwards (a full specialisation).

template <WeightCodec kCodec>
constexpr int run_length = kCodec == WeightCodec::e4m3fn ? 4 : 2;

constexpr std::uint8_t kPairs[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                     11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                     22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
struct Orders {
  std::uint8_t by_run2[32], by_run4[64];  // place = k * 16 + column
};
constexpr Orders make_orders() {
  Orders o = {};
  for (int c = 0; c < kVector; ++c) {
    for (int k = 0; k < 2; ++k) o.by_run2[c * 2 + k] = static_cast<std::uint8_t>(k * 16 + c);
    for (int k = 0; k < 4; ++k) o.by_run4[c * 4 + k] = static_cast<std::uint8_t>(k * 16 + c);
  }
  return o;
}
constexpr Orders kOrders = make_orders();

// Columns [column, column + L) of 64 packed bytes of one vector -> their steps.
template <WeightCodec kCodec, DotUnit kUnit>
MOEGAUGE_INLINE void decode_run(const std::byte* w, int column,
                                F (&steps)[run_length<kCodec> / elements_per_step(kUnit)]) {
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
  } else {
    for (int k = 0; k < 4; ++k) {
      steps[k] = e4m3fn_value(__builtin_convertvector(load_as<B>(w + k * kVector + column), U));
    }
  }
}

// `count` elements of two vectors, runs `stride` bytes apart -> panel [steps][2 * 16].
template <WeightCodec kCodec, DotUnit kUnit>
void decode_half(const std::byte* w, std::int64_t stride, std::int64_t count, float* panel) {
  constexpr int kSteps = run_length<kCodec> / elements_per_step(kUnit);
  for (std::int64_t k = 0; k < count; k += run_length<kCodec>, w += stride) {
#pragma GCC unroll 8
    for (int column = 0; column < 2 * kVector; column += L) {
      F steps[kSteps];
      decode_run<kCodec, kUnit>(w + column / kVector * 64, column % kVector, steps);
#pragma GCC unroll 4
      for (int s = 0; s < kSteps; ++s) store(panel + s * 2 * kVector + column, steps[s]);
    }
    panel += kSteps * 2 * kVector;
  }
}
