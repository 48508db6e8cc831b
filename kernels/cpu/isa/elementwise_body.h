// Activation functions, rounding and bulk conversions of one level. Included once per level inside
// its unnamed namespace, after vec.h.

template <ActivationFunction kFunction>
MOEGAUGE_INLINE F activated(const ActivateArgs& args, F gate, F up) {
  if constexpr (kFunction == ActivationFunction::silu) return gate * sigmoid(gate) * up;
  if constexpr (kFunction == ActivationFunction::gelu_erf) return gate * normal_cdf(gate) * up;
  if constexpr (kFunction == ActivationFunction::gelu_tanh) {
    // 1/2 (1 + tanh z) = sigmoid(2 z)
    const F z = splat(0.79788456080286536f) * (gate + splat(0.044715f) * gate * gate * gate);
    return gate * sigmoid(z + z) * up;
  }
  const F g = at_most(gate, args.limit);
  const F u = at_least(at_most(up, args.limit), -args.limit);
  return (u + splat(args.beta)) * (g * sigmoid(splat(args.alpha) * g));
}

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

MOEGAUGE_INLINE F load_upto(const float* p, std::int64_t n) {
  return n >= L ? load(p) : load_part(p, n);
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

MOEGAUGE_INLINE F rounded(ActivationCodec codec, F x) {
  switch (codec) {
    case ActivationCodec::bf16:
      return round_to_bf16(x);
    case ActivationCodec::fp16:
      return round_to_fp16(x);
    case ActivationCodec::e4m3fn:
      return e4m3fn_value(e4m3fn_bits(x));
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

void encode(const EncodeArgs& args) {
  const std::int64_t group = args.group > 0 ? args.group : args.elements;
  for (std::int64_t g = 0; g * group < args.elements; ++g) {
    const std::int64_t begin = g * group;
    const std::int64_t end = begin + group < args.elements ? begin + group : args.elements;
    float scale = 1.0f;
    if (args.group > 0) {
      const float amax = finite_amax(args.in + begin, end - begin);
      scale = (amax > args.amax_floor ? amax : args.amax_floor) / 448.0f;
      args.scales[g] = scale;
    }
    for (std::int64_t i = begin; i < end; i += L) {
      F x = load_upto(args.in + i, end - i);
      if (args.group > 0) x = x / splat(scale);
      put_steps(args.unit, args.out, i, rounded(args.codec, x));
    }
  }
  const std::int64_t done = (args.elements + L - 1) / L * L;
  for (std::int64_t i = done; i < args.padded; i += L) put_steps(args.unit, args.out, i, F{});
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

MOEGAUGE_INLINE U narrow_bits(NarrowType type, F x) {
  return type == NarrowType::bf16 ? bf16_bits(x) : fp16_bits(x);
}
template <typename V, typename T>
MOEGAUGE_INLINE void store_upto(T* p, std::int64_t n, U lanes) {
  const V narrow_lanes = __builtin_convertvector(lanes, V);
  if (n >= L) {
    store_as(p, narrow_lanes);
  } else {
    for (std::int64_t i = 0; i < n; ++i) p[i] = narrow_lanes[i];
  }
}
template <typename V, typename T>
MOEGAUGE_INLINE U load_widened(const T* p, std::int64_t n) {
  V v = {};
  if (n >= L) {
    v = load_as<V>(p);
  } else {
    for (std::int64_t i = 0; i < n; ++i) v[i] = p[i];
  }
  return __builtin_convertvector(v, U);
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
