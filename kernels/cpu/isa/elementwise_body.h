// Activation functions, rounding and bulk conversions of one level. Included once per level inside
// its unnamed namespace, after vec.h.

#include "kernels/cpu/isa/activation_body.h"

template <ActivationFunction kFunction>
void activate_as(const ActivateArgs& args) {
  const std::int64_t stride = args.vectors * kVector;
  for (std::int64_t r = 0; r < args.rows; ++r) {
    for (std::int64_t j = 0; j < args.vectors / 2 * kVector; j += L) {
      const std::int64_t column = j / kVector * 2 * kVector + j % kVector;
      const float* c = args.c + r * stride + column;
      F gate = load(c);
      F up = load(c + kVector);
      if (args.bias) {
        gate = gate + load(args.bias + column);
        up = up + load(args.bias + column + kVector);
      }
      if (args.row_weight) {
        gate = gate * splat(args.row_weight[r]);
        up = up * splat(args.row_weight[r]);
      }
      store(args.out + r * args.ld + j, activated<kFunction>(args, gate, up));
    }
  }
}

void activate(const ActivateArgs& args) {
  switch (args.function) {
    case ActivationFunction::silu:
      return activate_as<ActivationFunction::silu>(args);
    case ActivationFunction::gelu_erf:
      return activate_as<ActivationFunction::gelu_erf>(args);
    case ActivationFunction::gelu_tanh:
      return activate_as<ActivationFunction::gelu_tanh>(args);
    case ActivationFunction::swiglu_clamped:
      return activate_as<ActivationFunction::swiglu_clamped>(args);
  }
}

// Largest finite magnitude.
inline float finite_amax(const float* in, std::int64_t n) {
  U best = {};
  for (std::int64_t i = 0; i < n; i += L) {
    const U m = magnitude_bits(load_upto(in + i, n - i));
    const U finite = select(m < 0x7F80'0000u, m, U{});
    best = select(finite > best, finite, best);
  }
  std::uint32_t amax = 0;
  for (int i = 0; i < L; ++i) amax = best[i] > amax ? best[i] : amax;
  float value;
  __builtin_memcpy(&value, &amax, sizeof value);
  return value;
}

// 2^exponent with the exponent clamped to E8M0's range.
inline float e8m0_scale(std::int64_t exponent) {
  const std::int64_t code = exponent < -127 ? 0 : exponent > 127 ? 254 : exponent + 127;
  // 2^-127 is a subnormal float.
  const std::uint32_t bits = code == 0 ? 0x0040'0000u : static_cast<std::uint32_t>(code) << 23;
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
// x = (1 + fraction / 2^23) * 2^exponent; x > 0.
struct Split {
  std::int64_t exponent;
  std::uint32_t fraction;
};
inline Split split(float x) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  if (bits < 0x0080'0000u) {  // a subnormal is a small integer
    const float normal = static_cast<float>(bits);
    __builtin_memcpy(&bits, &normal, sizeof bits);
    return {static_cast<std::int64_t>(bits >> 23) - 149 - 127, bits & 0x007F'FFFFu};
  }
  return {static_cast<std::int64_t>(bits >> 23) - 127, bits & 0x007F'FFFFu};
}

float scale_of(const Scaling& scaling, float amax) {
  switch (scaling.rule) {
    case ScalingRule::none:
      return 1.0f;
    case ScalingRule::given:
      return scaling.given;
    case ScalingRule::amax: {
      const float floored = amax > scaling.amax_floor ? amax : scaling.amax_floor;
      const float scale = floored / scaling.maximum;
      return scale > scaling.scale_floor ? scale : scaling.scale_floor;
    }
    case ScalingRule::power_of_two_ceil: {
      if (!(amax > 0)) return e8m0_scale(-127);
      const Split a = split(amax), m = split(scaling.maximum);
      return e8m0_scale(a.exponent - m.exponent + (a.fraction > m.fraction ? 1 : 0));
    }
    case ScalingRule::power_of_two_floor:
      return e8m0_scale(amax > 0 ? split(amax).exponent : -127);
  }
  return 1.0f;
}

MOEGAUGE_INLINE F rounded(ActivationCodec codec, float maximum, F x) {
  switch (codec) {
    case ActivationCodec::bf16:
      return round_to_bf16(x);
    case ActivationCodec::fp16:
      return round_to_fp16(x);
    case ActivationCodec::e4m3fn:
      return e4m3fn_value(e4m3fn_bits(x));
    case ActivationCodec::e4m3fnuz:
      return e4m3fnuz_value(e4m3fnuz_bits(x, maximum));
    case ActivationCodec::int8:
      return round_to_int8(x);
  }
  return x;
}

// Elements [begin, begin + n), n padded to L, of a row whose values already are what the codec
// holds.
MOEGAUGE_INLINE void put_steps(DotUnit unit, float* out, std::int64_t begin, F value) {
  if (unit == DotUnit::fp32) {
    store(out + begin, value);
  } else {
    const H half = __builtin_convertvector(bits_of(value) >> 16, H);
    store_as(reinterpret_cast<std::uint16_t*>(out) + begin, half);
  }
}

inline bool holds_nan(const float* in, std::int64_t n) {
  I nan = {};
  for (std::int64_t i = 0; i < n; i += L) {
    const F x = load_upto(in + i, n - i);
    nan |= x != x;
  }
  std::int32_t any = 0;
  for (int i = 0; i < L; ++i) any |= nan[i];
  return any != 0;
}

void encode(const EncodeArgs& args) {
  const std::int64_t group = args.group > 0 ? args.group : args.elements;
  const bool scaled = args.scaling.rule != ScalingRule::none;
  for (std::int64_t g = 0; g * group < args.elements; ++g) {
    const std::int64_t begin = g * group;
    const std::int64_t end = begin + group < args.elements ? begin + group : args.elements;
    float scale = 1.0f;
    if (scaled) {
      const bool given = args.scaling.rule == ScalingRule::given;
      scale = scale_of(args.scaling, given ? 0 : finite_amax(args.in + begin, end - begin));
      if (args.codec == ActivationCodec::int8 && holds_nan(args.in + begin, end - begin)) {
        scale = __builtin_nanf("");
      }
      if (args.scales) args.scales[g] = scale;
    }
    for (std::int64_t i = begin; i < end; i += L) {
      F x = load_upto(args.in + i, end - i);
      if (scaled) x = x / splat(scale);
      put_steps(args.unit, args.out, i, rounded(args.codec, args.scaling.maximum, x));
    }
  }
  const std::int64_t done = (args.elements + L - 1) / L * L;
  for (std::int64_t i = done; i < args.padded; i += L) put_steps(args.unit, args.out, i, F{});
}

template <typename T>
void gather_elements(const T* in, const std::int32_t* from, std::int64_t n, T* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = from[i] < 0 ? T{} : in[from[i]];
}
void gather_steps(DotUnit unit, const float* in, const std::int32_t* from, std::int64_t n,
                  float* out) {
  if (unit == DotUnit::fp32) return gather_elements(in, from, n, out);
  gather_elements(reinterpret_cast<const std::uint16_t*>(in), from, n,
                  reinterpret_cast<std::uint16_t*>(out));
}

// In the same order at every level: 16 sums over every sixteenth element, then those in a row.
void sum_groups(DotUnit unit, const float* steps, std::int64_t elements, std::int64_t group,
                float* sums) {
  for (std::int64_t begin = 0; begin < elements; begin += group) {
    const std::int64_t end = begin + group < elements ? begin + group : elements;
    F partial[16 / L] = {};
    for (std::int64_t i = begin; i < end; i += 16) {
      for (int j = 0; j < 16 / L; ++j) {
        F x;
        if (unit == DotUnit::fp32) {
          x = load(steps + i + j * L);
        } else {
          const auto* halves = reinterpret_cast<const std::uint16_t*>(steps) + i + j * L;
          x = float_of(__builtin_convertvector(load_as<H>(halves), U) << 16);
        }
        partial[j] = partial[j] + x;
      }
    }
    float sum = 0;
    for (int i = 0; i < 16; ++i) sum += partial[i / L][i % L];
    *sums++ = sum;
  }
}

void store_pairs(const float* c, std::int64_t rows, std::int64_t stride, std::int64_t columns,
                 const float* bias, const float* weight, float* const* out) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t j = 0; j < columns; j += L) {
      F x = load(c + r * stride + j);
      if (bias) x = x + load_upto(bias + j, columns - j);
      if (weight) x = x * splat(weight[r]);
      if (columns - j >= L) {
        store(out[r] + j, x);
      } else {
        store_part(out[r] + j, columns - j, x);
      }
    }
  }
}

void reduce(const float* const* rows, std::int64_t count, std::int64_t columns, NarrowType type,
            std::uint16_t* y) {
  for (std::int64_t j = 0; j < columns; j += L) {
    F sum = {};
    for (std::int64_t t = 0; t < count; ++t) sum = sum + load_upto(rows[t] + j, columns - j);
    store_upto<H>(y + j, columns - j, narrow_bits(type, sum));
  }
}

void widen(NarrowType type, const std::uint16_t* in, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; i += L) {
    const U h = load_widened<H>(in + i, n - i);
    const F value = type == NarrowType::bf16 ? float_of(h << 16) : fp16_value(h);
    if (n - i >= L) {
      store(out + i, value);
    } else {
      store_part(out + i, n - i, value);
    }
  }
}

void narrow(NarrowType type, const float* in, std::int64_t n, std::uint16_t* out) {
  for (std::int64_t i = 0; i < n; i += L) {
    store_upto<H>(out + i, n - i, narrow_bits(type, load_upto(in + i, n - i)));
  }
}

void decode_fp8(Fp8Type type, const std::uint8_t* in, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; i += L) {
    const U code = load_widened<B>(in + i, n - i);
    const F value = type == Fp8Type::e4m3fn ? e4m3fn_value(code) : e4m3fnuz_value(code);
    if (n - i >= L) {
      store(out + i, value);
    } else {
      store_part(out + i, n - i, value);
    }
  }
}

void encode_fp8(Fp8Type type, float maximum, const float* in, std::int64_t n, std::uint8_t* out) {
  for (std::int64_t i = 0; i < n; i += L) {
    const F x = load_upto(in + i, n - i);
    store_upto<B>(out + i, n - i,
                  type == Fp8Type::e4m3fn ? e4m3fn_bits(x) : e4m3fnuz_bits(x, maximum));
  }
}
