// One hardware vector of the level and the arithmetic that all levels share, written with the
// compiler's vector extensions: the same IEEE operations in the same order on 4, 8 or 16 lanes, so
// that every level without a bf16 dot instruction returns the same bits. Included inside the
// level's unnamed namespace, after MOEGAUGE_LANES is set; <immintrin.h> is included before it.

constexpr int L = MOEGAUGE_LANES;
typedef float F __attribute__((vector_size(4 * L)));
typedef std::int32_t I __attribute__((vector_size(4 * L)));
typedef std::uint32_t U __attribute__((vector_size(4 * L)));
typedef std::uint16_t H __attribute__((vector_size(2 * L)));
typedef std::uint8_t B __attribute__((vector_size(L)));

#define MOEGAUGE_INLINE inline __attribute__((always_inline))
// What the compiler knows about a pointer's target stops here.
#define MOEGAUGE_FORGET(pointer) asm volatile("" : "+r"(pointer))

template <typename V, typename T>
MOEGAUGE_INLINE V load_as(const T* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <typename V, typename T>
MOEGAUGE_INLINE void store_as(T* p, V v) {
  __builtin_memcpy(p, &v, sizeof v);
}
MOEGAUGE_INLINE F load(const float* p) { return load_as<F>(p); }
MOEGAUGE_INLINE void store(float* p, F v) { store_as(p, v); }

MOEGAUGE_INLINE F splat(float x) {
#if MOEGAUGE_LANES == 16
  return _mm512_set1_ps(x);
#elif MOEGAUGE_LANES == 8
  return _mm256_set1_ps(x);
#else
  return F{x, x, x, x};
#endif
}
MOEGAUGE_INLINE U splat_bits(std::uint32_t x) { return x | U{}; }

// a * b + c. Products of two bf16 or two FP8 values are exact in fp32, so fusing changes nothing
// there; the elementwise code below never calls this.
MOEGAUGE_INLINE F multiply_add(F a, F b, F c) {
#if MOEGAUGE_LANES == 16
  return _mm512_fmadd_ps(a, b, c);
#elif MOEGAUGE_LANES == 8
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

MOEGAUGE_INLINE F select(I mask, F yes, F no) { return mask ? yes : no; }
MOEGAUGE_INLINE U select(I mask, U yes, U no) { return mask ? yes : no; }
MOEGAUGE_INLINE U bits_of(F x) { return (U)x; }
MOEGAUGE_INLINE F float_of(U x) { return (F)x; }
MOEGAUGE_INLINE U magnitude_bits(F x) { return bits_of(x) & 0x7FFF'FFFFu; }

// NaN stays NaN: a comparison with it is false.
MOEGAUGE_INLINE F at_most(F x, float limit) { return select(x > splat(limit), splat(limit), x); }
MOEGAUGE_INLINE F at_least(F x, float limit) { return select(x < splat(limit), splat(limit), x); }

// A short row end is worked on as a full vector with zeros.
MOEGAUGE_INLINE F load_part(const float* p, std::int64_t n) {
  float buffer[L] = {};
  for (std::int64_t i = 0; i < n; ++i) buffer[i] = p[i];
  return load(buffer);
}
MOEGAUGE_INLINE void store_part(float* p, std::int64_t n, F v) {
  float buffer[L];
  store(buffer, v);
  for (std::int64_t i = 0; i < n; ++i) p[i] = buffer[i];
}

// The rules of reference/formats, on vectors. Results are in the low bits of each lane.
MOEGAUGE_INLINE U bf16_bits(F x) {
  const U u = bits_of(x);
  const U rounded = (u + 0x7FFFu + ((u >> 16) & 1u)) >> 16;
  return select(magnitude_bits(x) > 0x7F80'0000u, (u >> 16) | 0x40u, rounded);
}
MOEGAUGE_INLINE F round_to_bf16(F x) { return float_of(bf16_bits(x) << 16); }

MOEGAUGE_INLINE U fp16_bits(F x) {
  const U sign = (bits_of(x) >> 16) & 0x8000u;
  const U magnitude = magnitude_bits(x);
  const U nan = 0x7E00u | ((magnitude >> 13) & 0x3FFu);
  const U subnormal = bits_of(float_of(magnitude) + splat(0.5f)) - 0x3F00'0000u;
  const U normal = ((magnitude + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13) - ((127u - 15u) << 10);
  U r = select(magnitude < 0x3880'0000u, subnormal, normal);
  r = select(magnitude >= 0x4780'0000u, splat_bits(0x7C00u), r);
  r = select(magnitude > 0x7F80'0000u, nan, r);
  return sign | r;
}
MOEGAUGE_INLINE F fp16_value(U h) {
  const U sign = (h & 0x8000u) << 16;
  const U mantissa = h & 0x3FFu;
  const U magnitude = h & 0x7FFFu;
  const U normal = (magnitude << 13) + ((127u - 15u) << 23);
  const U special = 0x7F80'0000u | (mantissa << 13);
  const U subnormal = bits_of(__builtin_convertvector((I)mantissa, F) * splat(0x1p-24f));
  U r = select(magnitude < 0x400u, subnormal, normal);
  r = select(magnitude >= 0x7C00u, special, r);
  return float_of(sign | r);
}
MOEGAUGE_INLINE F round_to_fp16(F x) { return fp16_value(fp16_bits(x)); }

// `rebias` is 127 minus the format's bias.
MOEGAUGE_INLINE U fp8_magnitude(F x, std::uint32_t rebias, float maximum) {
  const F clamped = at_most(float_of(magnitude_bits(x)), maximum);
  const U u = bits_of(clamped);
  const std::uint32_t magic = (rebias - 2u + 23u) << 23;
  const U subnormal = bits_of(clamped + float_of(splat_bits(magic))) - magic;
  const U normal = ((u + 0x7'FFFFu + ((u >> 20) & 1u)) >> 20) - (rebias << 3);
  return select(u < ((rebias + 1u) << 23), subnormal, normal);
}
MOEGAUGE_INLINE F fp8_magnitude_value(U magnitude, std::uint32_t rebias) {
  const U normal = (magnitude << 20) + (rebias << 23);
  const F subnormal =
      __builtin_convertvector((I)magnitude, F) * float_of(splat_bits((rebias - 2u) << 23));
  return select(magnitude < 8u, subnormal, float_of(normal));
}
MOEGAUGE_INLINE U e4m3fn_bits(F x) {
  const U sign = (bits_of(x) >> 24) & 0x80u;
  const U magnitude = fp8_magnitude(x, 120, 448.0f);
  return sign | select(magnitude_bits(x) > 0x7F80'0000u, splat_bits(0x7Fu), magnitude);
}
MOEGAUGE_INLINE F e4m3fn_value(U code) {
  const U sign = (code & 0x80u) << 24;
  const U magnitude = code & 0x7Fu;
  const U value = sign | bits_of(fp8_magnitude_value(magnitude, 120));
  return float_of(select(magnitude == 0x7Fu, splat_bits(0x7FC0'0000u), value));
}
MOEGAUGE_INLINE U e4m3fnuz_bits(F x, float maximum) {
  const U sign = (bits_of(x) >> 24) & 0x80u;
  const U magnitude = fp8_magnitude(x, 119, maximum);
  const U code = select(magnitude == 0u, U{}, sign | magnitude);
  return select(magnitude_bits(x) > 0x7F80'0000u, splat_bits(0x80u), code);
}
MOEGAUGE_INLINE F e4m3fnuz_value(U code) {
  const U sign = (code & 0x80u) << 24;
  const U value = bits_of(fp8_magnitude_value(code & 0x7Fu, 119));
  return float_of(select(code == 0x80u, splat_bits(0x7FC0'0000u), sign | value));
}

// Two's complement integers in the low bits of each lane.
MOEGAUGE_INLINE F int8_value(U code) { return __builtin_convertvector((I)(code << 24) >> 24, F); }
MOEGAUGE_INLINE F int4_value(U code) { return __builtin_convertvector((I)(code << 28) >> 28, F); }
MOEGAUGE_INLINE F e2m1_value(U code) {
  const U magnitude = code & 7u;
  const U normal = (magnitude << 22) + (126u << 23);
  const U value = select(magnitude < 2u, magnitude * 0x3F00'0000u, normal);  // 0 or 0.5 below 1
  return float_of((code & 8u) << 28 | value);
}
// Round to nearest, ties to even, clamped to [-127, 127]; a NaN gives 0.
MOEGAUGE_INLINE F round_to_int8(F x) {
  const F magic = splat(0x1.8p23f);  // its last place is 1
  const F clamped = at_least(at_most(x, 127.0f), -127.0f);
  return select(x == x, (clamped + magic) - magic, F{});
}

// exp(x) by Cephes' expf (Moshier): 2^n * p(r), x = n ln 2 + r, |r| <= ln 2 / 2; relative error
// 2e-7. Arguments are clamped to [-87, 88]: beyond, e^x only ever meets 1 in a sum, or a product
// that vanishes.
MOEGAUGE_INLINE F exp_approx(F x) {
  x = at_least(at_most(x, 88.0f), -87.0f);
  const F magic = splat(0x1.8p23f);  // adding it rounds to an integer
  const F shifted = x * splat(1.44269504088896341f) + magic;
  const F n = shifted - magic;
  const F r = x - n * splat(0.693359375f) - n * splat(-2.12194440e-4f);
  F p = splat(1.9875691500e-4f);
  p = p * r + splat(1.3981999507e-3f);
  p = p * r + splat(8.3334519073e-3f);
  p = p * r + splat(4.1665795894e-2f);
  p = p * r + splat(1.6666665459e-1f);
  p = p * r + splat(5.0000001201e-1f);
  p = p * r * r + r + splat(1.0f);
  const U scale = (bits_of(shifted) + 127u) << 23;  // magic's low bits hold n
  return select(x == x, p * float_of(scale), x);
}
MOEGAUGE_INLINE F sigmoid(F x) { return splat(1.0f) / (splat(1.0f) + exp_approx(splat(0.0f) - x)); }

// The normal distribution function, 1/2 erfc(-x / sqrt 2), with the rational Chebyshev fit of
// Numerical Recipes (2nd ed., section 6.2, erfcc): relative error 1.2e-7 everywhere.
MOEGAUGE_INLINE F normal_cdf(F x) {
  const F z = float_of(magnitude_bits(x)) * splat(0.70710678118654752f);
  const F t = splat(1.0f) / (splat(1.0f) + splat(0.5f) * z);
  F p = splat(0.17087277f);
  p = p * t + splat(-0.82215223f);
  p = p * t + splat(1.48851587f);
  p = p * t + splat(-1.13520398f);
  p = p * t + splat(0.27886807f);
  p = p * t + splat(-0.18628806f);
  p = p * t + splat(0.09678418f);
  p = p * t + splat(0.37409196f);
  p = p * t + splat(1.00002368f);
  p = p * t + splat(-1.26551223f);
  const F upper = splat(0.5f) * t * exp_approx(p - z * z);  // 1/2 erfc(z)
  return select(x < splat(0.0f), upper, splat(1.0f) - upper);
}
