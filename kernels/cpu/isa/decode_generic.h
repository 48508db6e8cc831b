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

// 64 packed bytes of one vector -> its steps, `stride` floats apart.
template <WeightCodec kCodec, DotUnit kUnit>
MOEGAUGE_INLINE void decode_run(const std::byte* w, float* out, std::int64_t stride) {
  if constexpr (kCodec == WeightCodec::bf16 && kUnit == DotUnit::bf16_pair) {
    __builtin_memcpy(out, w, 64);  // a step is what lies in memory
  } else if constexpr (kCodec == WeightCodec::bf16) {
#pragma GCC unroll 4
    for (int j = 0; j < kVector; j += L) {
      const U pair = load_as<U>(w + 4 * j);
      store(out + j, float_of(pair << 16));
      store(out + stride + j, float_of(pair & 0xFFFF'0000u));
    }
  } else if constexpr (kCodec == WeightCodec::fp16) {
#pragma GCC unroll 4
    for (int j = 0; j < kVector; j += L) {
      for (int k = 0; k < 2; ++k) {
        const U h = __builtin_convertvector(load_as<H>(w + 2 * (k * kVector + j)), U);
        store(out + k * stride + j, fp16_value(h));
      }
    }
  } else {
#pragma GCC unroll 4
    for (int j = 0; j < kVector; j += L) {
      for (int k = 0; k < 4; ++k) {
        const U code = __builtin_convertvector(load_as<B>(w + k * kVector + j), U);
        store(out + k * stride + j, e4m3fn_value(code));
      }
    }
  }
}

// `count` elements of a tile -> panel [steps][vectors * 16].
template <WeightCodec kCodec, DotUnit kUnit>
void decode_tile(const std::byte* w, int vectors, std::int64_t count, std::int64_t prefetch,
                 float* panel) {
  const std::int64_t stride = vectors * kVector;
  constexpr int kSteps = run_length<kCodec> / elements_per_step(kUnit);
  for (std::int64_t k = 0; k < count; k += run_length<kCodec>, panel += kSteps * stride) {
    for (int v = 0; v < vectors; ++v, w += 64) {
      __builtin_prefetch(w + prefetch, 0, 2);
      decode_run<kCodec, kUnit>(w, panel + v * kVector, stride);
    }
  }
}
