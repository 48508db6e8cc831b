// The kernels of one level. Included once per level inside its unnamed namespace, after vec.h and
// the level's own dot instruction and weight decoders (decode_tile).

// ---- GEMM -------------------------------------------------------------------------------------

// acc[r][v] += sum over 16 * lines steps of a (packed, MR rows) times w (decoded, `stride` floats
// from step to step). One chain of sums per output in the order of the contracted dimension.
template <DotUnit kUnit, int MR, int NV>
MOEGAUGE_INLINE void dot_block(const float* a, const float* w, std::int64_t stride,
                               std::int64_t lines, F (&acc)[MR][NV]) {
  for (std::int64_t line = 0; line < lines; ++line, a += MR * 16) {
#pragma GCC unroll 4
    for (int s = 0; s < 16; ++s, w += stride) {
      F wv[NV];
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) wv[v] = load(w + v * L);
#pragma GCC unroll 6
      for (int r = 0; r < MR; ++r) {
        const F x = splat(a[r * 16 + s]);
#pragma GCC unroll 4
        for (int v = 0; v < NV; ++v) acc[r][v] = dot<kUnit>(x, wv[v], acc[r][v]);
      }
    }
  }
}

struct BlockScales {
  const float* a = nullptr;  // of this block's first row
  const float* w = nullptr;  // of this group's first vector
  int lanes = 1;
  MOEGAUGE_INLINE F weights(int column) const {
    return lanes == 1 ? splat(w[column / kVector]) : load(w + column);
  }
};

template <DotUnit kUnit, int MR, int NV>
void raw_block(const float* a, const float* w, std::int64_t stride, std::int64_t lines, bool first,
               float* c) {
  F acc[MR][NV];
#pragma GCC unroll 6
  for (int r = 0; r < MR; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) acc[r][v] = first ? F{} : load(c + r * stride + v * L);
  dot_block<kUnit, MR, NV>(a, w, stride, lines, acc);
#pragma GCC unroll 6
  for (int r = 0; r < MR; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) store(c + r * stride + v * L, acc[r][v]);
}

// One scale group: its own sum, scaled once, added to c.
template <DotUnit kUnit, int MR, int NV>
void scaled_block(const float* a, const float* w, std::int64_t stride, std::int64_t lines,
                  bool first, float* c, int column, const BlockScales& scales) {
  F acc[MR][NV] = {};
  dot_block<kUnit, MR, NV>(a, w, stride, lines, acc);
#pragma GCC unroll 4
  for (int v = 0; v < NV; ++v) {
    const F weight = scales.weights(column + v * L);
#pragma GCC unroll 6
    for (int r = 0; r < MR; ++r) {
      const F scaled = (acc[r][v] * splat(scales.a ? scales.a[r] : 1.0f)) * weight;
      float* out = c + r * stride + v * L;
      store(out, first ? scaled : load(out) + scaled);
    }
  }
}

// Rows [0, MR) of a block over the decoded panel of elements [begin, begin + count).
template <DotUnit kUnit, int MR, int NV>
void panel_block(const GemmArgs& g, std::int64_t row, std::int64_t begin, std::int64_t count) {
  constexpr int kStep = elements_per_step(kUnit);
  const std::int64_t stride = g.vectors * kVector;
  const bool scaled = g.group > 0 && g.group <= g.block;
  const std::int64_t group = scaled ? g.group : count;
  const float* a = g.a + row * (g.elements / kStep) + begin / kStep * MR;
  float* c = g.c + row * stride;
  for (std::int64_t j = 0; j < stride; j += NV * L) {
    for (std::int64_t k = 0; k < count; k += group) {
      const std::int64_t length = group < count - k ? group : count - k;
      const std::int64_t lines = length / kStep / 16;
      const float* ak = a + k / kStep * MR;
      const float* wk = g.panel + k / kStep * stride + j;
      const bool first = begin + k == 0;
      if (scaled) {
        const std::int64_t index = (begin + k) / g.group;
        const BlockScales scales = {g.a_scale ? g.a_scale + index * g.rows + row : nullptr,
                                    g.w_scale + index * g.vectors * g.scale_lanes, g.scale_lanes};
        scaled_block<kUnit, MR, NV>(ak, wk, stride, lines, first, c + j, static_cast<int>(j),
                                    scales);
      } else {
        raw_block<kUnit, MR, NV>(ak, wk, stride, lines, first, c + j);
      }
    }
  }
}

template <DotUnit kUnit, int NV>
void panel_rows(const GemmArgs& g, std::int64_t begin, std::int64_t count) {
  const RowBlocks blocks(g.rows);
  std::int64_t row = 0;
  for (std::int64_t b = 0; b < blocks.count; ++b) {
    const int rows = blocks.size(b);
    switch (rows) {
      case 1: panel_block<kUnit, 1, NV>(g, row, begin, count); break;
      case 2: panel_block<kUnit, 2, NV>(g, row, begin, count); break;
      case 3: panel_block<kUnit, 3, NV>(g, row, begin, count); break;
      case 4: panel_block<kUnit, 4, NV>(g, row, begin, count); break;
      case 5: panel_block<kUnit, 5, NV>(g, row, begin, count); break;
      default: panel_block<kUnit, 6, NV>(g, row, begin, count); break;
    }
    row += rows;
  }
}

// One scale for the whole contracted dimension: applied once, at the end.
MOEGAUGE_INLINE void scale_outputs(const GemmArgs& g) {
  const std::int64_t stride = g.vectors * kVector;
  const BlockScales scales = {g.a_scale, g.w_scale, g.scale_lanes};
  for (std::int64_t r = 0; r < g.rows; ++r) {
    for (std::int64_t j = 0; j < stride; j += L) {
      float* c = g.c + r * stride + j;
      store(c, (load(c) * splat(g.a_scale ? g.a_scale[r] : 1.0f)) *
                   scales.weights(static_cast<int>(j)));
    }
  }
}

template <WeightCodec kCodec, DotUnit kUnit>
void gemm_as(const GemmArgs& g) {
  constexpr int kFull = MOEGAUGE_LANES == 16 ? 4 : 2;
  const std::int64_t element_bytes = 64 / kVector / run_length<kCodec>;
  for (std::int64_t begin = 0; begin < g.elements; begin += g.block) {
    const std::int64_t rest = g.elements - begin;
    const std::int64_t count = rest < g.block ? rest : g.block;
    const std::byte* w = g.w + begin * element_bytes * g.vectors * kVector;
    decode_tile<kCodec, kUnit>(w, g.vectors, count, g.prefetch, g.panel);
    if (g.vectors * kVector % (kFull * L) == 0) {
      panel_rows<kUnit, kFull>(g, begin, count);
    } else {
      panel_rows<kUnit, 2>(g, begin, count);
    }
  }
  if (g.group > g.block) scale_outputs(g);
}

void pack_rows(const float* const* rows, std::int64_t count, std::int64_t steps, float* out) {
  const RowBlocks blocks(count);
  for (std::int64_t b = 0; b < blocks.count; ++b) {
    const int size = blocks.size(b);
    for (std::int64_t s = 0; s < steps; s += 16) {
      for (int r = 0; r < size; ++r, out += 16) __builtin_memcpy(out, rows[r] + s, 64);
    }
    rows += size;
  }
}

// ---- elementwise ------------------------------------------------------------------------------

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
    case ActivationFunction::silu: return activate_as<ActivationFunction::silu>(args);
    case ActivationFunction::gelu_erf: return activate_as<ActivationFunction::gelu_erf>(args);
    case ActivationFunction::gelu_tanh: return activate_as<ActivationFunction::gelu_tanh>(args);
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
    case ActivationCodec::bf16: return round_to_bf16(x);
    case ActivationCodec::fp16: return round_to_fp16(x);
    case ActivationCodec::e4m3fn: return e4m3fn_value(e4m3fn_bits(x));
  }
  return x;
}

// Elements [begin, begin + n), n padded to L, of a row whose values already are what the codec holds.
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

// ---- ceilings ---------------------------------------------------------------------------------

std::uint64_t sum(const std::byte* data, std::int64_t bytes) {
  U s[4] = {};
  for (std::int64_t i = 0; i < bytes; i += 16 * L) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) s[j] += load_as<U>(data + i + j * 4 * L);
  }
  const U total = s[0] + s[1] + s[2] + s[3];
  std::uint64_t result = 0;
  for (int i = 0; i < L; ++i) result += total[i];
  return result;
}

template <DotUnit kUnit>
double dot_loop_as(std::int64_t iterations) {
  constexpr int kChains = 12;
  F acc[kChains];
  for (int i = 0; i < kChains; ++i) acc[i] = splat(static_cast<float>(i));
  F x = splat(0x1.01p-7f), w = splat(0x1.01p-9f);
  for (std::int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kChains; ++j) acc[j] = dot<kUnit>(x, w, acc[j]);
    // The values are opaque to the compiler from one iteration to the next.
    MOEGAUGE_OPAQUE(x);
    MOEGAUGE_OPAQUE(w);
  }
  for (int j = 0; j < kChains; ++j) MOEGAUGE_OPAQUE(acc[j]);
  return static_cast<double>(iterations) * kChains * L * 2.0 * elements_per_step(kUnit);
}

// ---- what the table asks ----------------------------------------------------------------------

DotUnit dot_unit(ActivationCodec codec) {
  return kBf16Dot && codec != ActivationCodec::fp16 ? DotUnit::bf16_pair : DotUnit::fp32;
}

WeightLayout weight_layout(WeightCodec codec, DotUnit) {
  switch (codec) {
    case WeightCodec::bf16: return {2, 2, kPairs};
    case WeightCodec::fp16: return {2, 2, kOrders.by_run2};
    case WeightCodec::e4m3fn: return {1, 4, kE4m3Order};
  }
  return {};
}

template <WeightCodec kCodec>
void gemm_of(const GemmArgs& args) {
  if constexpr (kBf16Dot && kCodec != WeightCodec::fp16) {
    if (args.unit == DotUnit::bf16_pair) return gemm_as<kCodec, DotUnit::bf16_pair>(args);
  }
  gemm_as<kCodec, DotUnit::fp32>(args);
}

void gemm(WeightCodec codec, const GemmArgs& args) {
  switch (codec) {
    case WeightCodec::bf16: return gemm_of<WeightCodec::bf16>(args);
    case WeightCodec::fp16: return gemm_of<WeightCodec::fp16>(args);
    case WeightCodec::e4m3fn: return gemm_of<WeightCodec::e4m3fn>(args);
  }
}

double dot_loop(DotUnit unit, std::int64_t iterations) {
  if constexpr (kBf16Dot) {
    if (unit == DotUnit::bf16_pair) return dot_loop_as<DotUnit::bf16_pair>(iterations);
  }
  return dot_loop_as<DotUnit::fp32>(iterations);
}

constexpr KernelTable make_table(const char* name) {
  return {name,   MOEGAUGE_LANES > 4, dot_unit, weight_layout, pack_rows, gemm,       activate,
          encode, store_pairs,        reduce,   widen,         narrow,    decode_fp8, encode_fp8,
          sum,    dot_loop};
}
