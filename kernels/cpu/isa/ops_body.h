// The single ops of one level and its table. Included once per level inside its unnamed namespace,
// after vec.h.

#include "kernels/cpu/isa/activation_body.h"

MOEGAUGE_INLINE F load_coded(ElementCode code, const void* p, std::int64_t n) {
  if (code == ElementCode::fp32) return load_upto(static_cast<const float*>(p), n);
  const U h = load_widened<H>(static_cast<const std::uint16_t*>(p), n);
  return code == ElementCode::bf16 ? float_of(h << 16) : fp16_value(h);
}

template <ElementCode kCode>
void weighted_sum_of(const WeightedSumArgs& args) {
  const auto* rows = static_cast<const std::byte*>(args.rows);
  const std::int64_t element = bytes_of(kCode);
  for (std::int64_t j = 0; j < args.columns; j += L) {
    F sum = {};
    for (std::int64_t t = 0; t < args.count; ++t) {
      const F x = load_coded(kCode, rows + (t * args.columns + j) * element, args.columns - j);
      sum = sum + (args.weights ? x * splat(args.weights[t]) : x);
    }
    store_upto<H>(args.y + j, args.columns - j, narrow_bits(args.out, sum));
  }
}

void weighted_sum(const WeightedSumArgs& args) {
  switch (args.code) {
    case ElementCode::bf16:
      return weighted_sum_of<ElementCode::bf16>(args);
    case ElementCode::fp16:
      return weighted_sum_of<ElementCode::fp16>(args);
    case ElementCode::fp32:
      return weighted_sum_of<ElementCode::fp32>(args);
  }
}

template <NarrowType kType>
MOEGAUGE_INLINE F widened(U bits) {
  return kType == NarrowType::bf16 ? float_of(bits << 16) : fp16_value(bits & 0xFFFFu);
}

// Pairs (gate, up) of one row as 32-bit words, of which `n` are there.
MOEGAUGE_INLINE U load_pairs(const std::uint16_t* p, std::int64_t n) {
  if (n >= L) return load_as<U>(p);
  std::uint32_t words[L] = {};
  __builtin_memcpy(words, p, static_cast<std::size_t>(n) * sizeof words[0]);
  return load_as<U>(words);
}

template <NarrowType kType, ActivationFunction kFunction>
void gate_up_as(const GateUpArgs& args) {
  const ActivateArgs parameters = {.alpha = args.alpha, .beta = args.beta, .limit = args.limit};
  for (std::int64_t j = 0; j < args.n; j += L) {
    const std::int64_t rest = args.n - j;
    F gate, up;
    if (args.interleaved) {
      const U pairs = load_pairs(args.gate_up + 2 * j, rest);
      gate = widened<kType>(pairs & 0xFFFFu);
      up = widened<kType>(pairs >> 16);
    } else {
      gate = widened<kType>(load_widened<H>(args.gate_up + j, rest));
      up = widened<kType>(load_widened<H>(args.gate_up + args.n + j, rest));
    }
    store_upto<H>(args.out + j, rest,
                  narrow_bits(kType, activated<kFunction>(parameters, gate, up)));
  }
}

template <NarrowType kType>
void gate_up_of(const GateUpArgs& args) {
  switch (args.function) {
    case ActivationFunction::silu:
      return gate_up_as<kType, ActivationFunction::silu>(args);
    case ActivationFunction::gelu_erf:
      return gate_up_as<kType, ActivationFunction::gelu_erf>(args);
    case ActivationFunction::gelu_tanh:
      return gate_up_as<kType, ActivationFunction::gelu_tanh>(args);
    case ActivationFunction::swiglu_clamped:
      return gate_up_as<kType, ActivationFunction::swiglu_clamped>(args);
  }
}

void gate_up(const GateUpArgs& args) {
  args.type == NarrowType::bf16 ? gate_up_of<NarrowType::bf16>(args)
                                : gate_up_of<NarrowType::fp16>(args);
}

// Largest finite magnitude: magnitudes of 16-bit floats order as their bits do.
float finite_amax(NarrowType type, const std::uint16_t* x, std::int64_t n) {
  const std::uint32_t infinity = type == NarrowType::bf16 ? 0x7F80u : 0x7C00u;
  U best = {};
  for (std::int64_t i = 0; i < n; i += L) {
    const U magnitude = load_widened<H>(x + i, n - i) & 0x7FFFu;
    const U finite = select(magnitude < infinity, magnitude, U{});
    best = select(finite > best, finite, best);
  }
  std::uint32_t amax = 0;
  for (int i = 0; i < L; ++i) amax = best[i] > amax ? best[i] : amax;
  const F value = type == NarrowType::bf16 ? widened<NarrowType::bf16>(splat_bits(amax))
                                           : widened<NarrowType::fp16>(splat_bits(amax));
  return value[0];
}

// Rounded to the nearest integer, ties to even, by adding 1.5 * 2^23; a NaN becomes 0.
MOEGAUGE_INLINE U int8_code(F x) {
  const F clamped = at_least(at_most(select(x == x, x, F{}), 127.0f), -127.0f);
  return bits_of(clamped + splat(0x1.8p23f)) & 0xFFu;
}

template <ByteFormat kFormat>
MOEGAUGE_INLINE U byte_code(F x, float maximum) {
  if constexpr (kFormat == ByteFormat::e4m3fn) return e4m3fn_bits(x);
  if constexpr (kFormat == ByteFormat::e4m3fnuz) return e4m3fnuz_bits(x, maximum);
  return int8_code(x);
}

template <NarrowType kType, ByteFormat kFormat>
void quantize_as(const QuantizeArgs& args) {
  const F scale = splat(args.scale);
  for (std::int64_t i = 0; i < args.n; i += L) {
    const F x = widened<kType>(load_widened<H>(args.x + i, args.n - i));
    store_upto<B>(args.q + i, args.n - i, byte_code<kFormat>(x / scale, args.maximum));
  }
}

template <NarrowType kType>
void quantize_of(const QuantizeArgs& args) {
  switch (args.format) {
    case ByteFormat::e4m3fn:
      return quantize_as<kType, ByteFormat::e4m3fn>(args);
    case ByteFormat::e4m3fnuz:
      return quantize_as<kType, ByteFormat::e4m3fnuz>(args);
    case ByteFormat::int8:
      return quantize_as<kType, ByteFormat::int8>(args);
  }
}

void quantize(const QuantizeArgs& args) {
  args.type == NarrowType::bf16 ? quantize_of<NarrowType::bf16>(args)
                                : quantize_of<NarrowType::fp16>(args);
}

// ---- routing ----

constexpr float kNever = -__builtin_inff();

MOEGAUGE_INLINE F fill_with(const float* p, std::int64_t n, float rest) {
  float buffer[L];
  for (int i = 0; i < L; ++i) buffer[i] = i < n ? p[i] : rest;
  return load(buffer);
}
MOEGAUGE_INLINE F load_scores(const float* p, std::int64_t n) {
  return n >= L ? load(p) : fill_with(p, n, kNever);
}
MOEGAUGE_INLINE F or_never(F x) { return select(x == x, x, splat(kNever)); }
MOEGAUGE_INLINE F larger(F a, F b) { return select(b > a, b, a); }
// Exactly 0 from where exp_approx is clamped on (reference/routing.h).
MOEGAUGE_INLINE F sigmoid_or_zero(F x) {
  return select(x < splat(-87.0f), splat(0.0f), sigmoid(x));
}

inline float largest_lane(F v) {
  float best = v[0];
  for (int i = 1; i < L; ++i) best = v[i] > best ? v[i] : best;
  return best;
}
inline float largest_of(const float* p, std::int64_t n) {
  F best = splat(kNever);
  for (std::int64_t i = 0; i < n; i += L) best = larger(best, load_scores(p + i, n - i));
  return largest_lane(best);
}

// The first of the largest scores, which then is no score any more.
inline std::int64_t take_largest(float* scores, std::int64_t n) {
  const float largest = largest_of(scores, n);
  std::int64_t at = 0;
  for (; at + L <= n; at += L) {
    const I equal = load(scores + at) == splat(largest);
    bool any = false;
    for (int i = 0; i < L; ++i) any |= equal[i] != 0;
    if (any) break;
  }
  while (!(scores[at] == largest)) ++at;
  scores[at] = __builtin_nanf("");
  return at;
}

inline void score_experts(const RouteArgs& args, float* scores) {
  for (std::int64_t e = 0; e < args.experts; e += L) {
    const std::int64_t rest = args.experts - e;
    F score = or_never(load_scores(args.logits + e, rest));
    if (args.score == SelectionScore::sigmoid) {
      const F logit = load_scores(args.logits + e, rest);
      score = sigmoid_or_zero(score);
      if (args.bias) score = score + load_upto(args.bias + e, rest);
      score = select(logit == logit, or_never(score), splat(kNever));
    }
    if (rest >= L) {
      store(scores + e, score);
    } else {
      store_part(scores + e, rest, score);
    }
  }
}

// The sum of the two best scores; a group of one has one.
inline float group_score(const float* scores, std::int64_t n) {
  F first = splat(kNever), second = splat(kNever);
  for (std::int64_t i = 0; i < n; i += L) {
    const F x = load_scores(scores + i, n - i);
    second = larger(second, select(x > first, first, x));
    first = larger(first, x);
  }
  // The best lane gives way to its own second.
  const float best = largest_lane(first);
  int lane = 0;
  while (!(first[lane] == best)) ++lane;
  first[lane] = second[lane];
  return n == 1 || best == __builtin_inff() ? best : best + largest_lane(first);
}

// Takes all scores of groups that are not chosen away.
inline void keep_best_groups(const RouteArgs& args, float* scores, float* groups) {
  const std::int64_t size = args.experts / args.groups;
  for (std::int64_t g = 0; g < args.groups; ++g) groups[g] = group_score(scores + g * size, size);
  for (std::int64_t i = 0; i < args.top_groups; ++i) take_largest(groups, args.groups);
  for (std::int64_t g = 0; g < args.groups; ++g) {
    if (groups[g] != groups[g]) continue;  // taken
    for (std::int64_t e = g * size; e < (g + 1) * size; ++e) scores[e] = __builtin_nanf("");
  }
}

// exp(logit - largest), with all mass on infinite logits where there are any.
MOEGAUGE_INLINE F softmax_term(F logit, float largest) {
  if (largest == __builtin_inff()) {
    return select(logit == splat(largest), splat(1.0f), splat(0.0f));
  }
  return select(logit == splat(kNever), splat(0.0f), exp_approx(logit - splat(largest)));
}

// Of all experts, in 16 sums over every sixteenth term at every level.
inline float softmax_sum(const RouteArgs& args, float largest) {
  constexpr int kParts = kVector / L;
  F sums[kParts] = {};
  for (std::int64_t e = 0; e < args.experts; e += kVector) {
    for (int part = 0; part < kParts; ++part) {
      const std::int64_t at = e + part * L;
      if (at >= args.experts) break;
      const F logit = or_never(load_scores(args.logits + at, args.experts - at));
      sums[part] = sums[part] + softmax_term(logit, largest);
    }
  }
  float sum = 0;
  for (int part = 0; part < kParts; ++part) {
    for (int i = 0; i < L; ++i) sum += sums[part][i];
  }
  return sum;
}

// Terms of the chosen logits into weights; returns what they are to be divided by.
inline float weigh(const RouteArgs& args, const float* chosen) {
  const bool softmax =
      args.weight == RouterWeight::softmax_of_all || args.weight == RouterWeight::softmax_of_chosen;
  const float largest = softmax ? largest_of(chosen, args.top_k) : 0;
  for (std::int64_t t = 0; t < args.top_k; t += L) {
    const F logit = load_scores(chosen + t, args.top_k - t);
    const F term = softmax ? softmax_term(logit, largest) : sigmoid_or_zero(logit);
    if (args.top_k - t >= L) {
      store(args.weights + t, term);
    } else {
      store_part(args.weights + t, args.top_k - t, term);
    }
  }
  if (args.weight == RouterWeight::sigmoid) return 1;
  if (args.weight == RouterWeight::softmax_of_all) return softmax_sum(args, largest);
  float sum = 0;
  for (std::int64_t t = 0; t < args.top_k; ++t) sum += args.weights[t];
  return sum;
}

void route(const RouteArgs& args) {
  float* const scores = args.scratch;
  float* const groups = scores + args.experts + kVector;
  float* const chosen = groups + args.groups + kVector;
  score_experts(args, scores);
  if (args.groups > 1) keep_best_groups(args, scores, groups);
  for (std::int64_t t = 0; t < args.top_k; ++t) {
    const std::int64_t id = take_largest(scores, args.experts);
    args.ids[t] = static_cast<std::int32_t>(id);
    const float logit = args.logits[id];
    chosen[t] = logit == logit ? logit : kNever;
  }
  const float sum = weigh(args, chosen);
  for (std::int64_t t = 0; t < args.top_k; ++t) {
    args.weights[t] = sum > 0 ? args.weights[t] / sum * args.scaling_factor : 0.0f;
  }
}

constexpr OpTable kOps = {.weighted_sum = weighted_sum,
                          .gate_up = gate_up,
                          .finite_amax = finite_amax,
                          .quantize = quantize,
                          .route = route};
