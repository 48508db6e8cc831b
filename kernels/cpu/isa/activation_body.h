// What whole layers and single ops share of one level: activation functions, and rows whose ends
// are short of a vector. Included once per level and translation unit inside its unnamed namespace,
// after vec.h.

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

MOEGAUGE_INLINE F load_upto(const float* p, std::int64_t n) {
  return n >= L ? load(p) : load_part(p, n);
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
