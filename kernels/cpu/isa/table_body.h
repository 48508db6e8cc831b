// The ceilings of one level and its table. Included once per level inside its unnamed namespace,
// after gemm_body.h and elementwise_body.h.

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

template <WeightCodec kCodec, DotUnit kUnit>
void decode_loop_as(const std::byte* w, std::int64_t bytes) {
  for (std::int64_t at = 0; at < bytes; at += 64) {
#pragma GCC unroll 2
    for (int part = 0; part < run_length<kCodec> / part_length<kCodec>; ++part) {
      for (int column = 0; column < kVector; column += L) {
        F steps[part_steps<kCodec, kUnit>];
        decode_run<kCodec, kUnit, false>(w + at, column, part, steps);
        for (F& step : steps) MOEGAUGE_OPAQUE(step);
      }
    }
  }
}

DotUnit dot_unit(ActivationCodec codec) {
  return kBf16Dot && codec != ActivationCodec::fp16 ? DotUnit::bf16_pair : DotUnit::fp32;
}

WeightLayout weight_layout(WeightCodec codec, DotUnit) {
  const int bits = element_bits(codec);
  const auto layout = [bits](const std::uint8_t* order) {
    return WeightLayout{bits, 32 / bits, order};
  };
  switch (codec) {
    case WeightCodec::bf16:
      return layout(kPairs);
    case WeightCodec::fp16:
      return layout(kOrders.by_run2);
    case WeightCodec::e4m3fn:
    case WeightCodec::e4m3fnuz:
      return fp8_layout(codec);
    case WeightCodec::int8:
      return layout(kOrders.by_run4);
    case WeightCodec::int4:
    case WeightCodec::e2m1:
      return layout(kOrders.nibbles);
  }
  return {};
}

// What this level's own dots take: a level with bf16 pairs leaves fp32 to the level below, whose
// code would be the same.
constexpr DotUnit kOwnUnit = kBf16Dot ? DotUnit::bf16_pair : DotUnit::fp32;
constexpr bool is_own(WeightCodec codec, DotUnit unit) {
  return unit == kOwnUnit && !(kBf16Dot && codec == WeightCodec::fp16);
}

// Calls fn with codec and unit as compile-time constants, if they are this level's own.
template <typename Fn>
void with_codec(WeightCodec codec, const Fn& fn) {
  const auto with_unit = [&](auto constant) {
    if constexpr (is_own(constant.value, kOwnUnit)) fn(constant, Constant<kOwnUnit>());
  };
  switch (codec) {
    case WeightCodec::bf16:
      return with_unit(Constant<WeightCodec::bf16>());
    case WeightCodec::fp16:
      return with_unit(Constant<WeightCodec::fp16>());
    case WeightCodec::e4m3fn:
      return with_unit(Constant<WeightCodec::e4m3fn>());
    case WeightCodec::e4m3fnuz:
      return with_unit(Constant<WeightCodec::e4m3fnuz>());
    case WeightCodec::int8:
      return with_unit(Constant<WeightCodec::int8>());
    case WeightCodec::int4:
      return with_unit(Constant<WeightCodec::int4>());
    case WeightCodec::e2m1:
      return with_unit(Constant<WeightCodec::e2m1>());
  }
}

void gemm(WeightCodec codec, const GemmArgs& args) {
  with_codec(codec, [&](auto of_weights, auto of_dots) {
    gemm_as<of_weights.value, of_dots.value>(args);
  });
}

void decode_loop(WeightCodec codec, DotUnit, const std::byte* w, std::int64_t bytes) {
  with_codec(codec, [&](auto of_weights, auto of_dots) {
    decode_loop_as<of_weights.value, of_dots.value>(w, bytes);
  });
}

double dot_loop(DotUnit unit, std::int64_t iterations) {
  if constexpr (kBf16Dot) {
    if (unit == DotUnit::bf16_pair) return dot_loop_as<DotUnit::bf16_pair>(iterations);
  }
  return dot_loop_as<DotUnit::fp32>(iterations);
}

constexpr KernelTable make_table(const char* name) {
  return {.name = name,
          .fused_multiply_add = MOEGAUGE_LANES > 4,
          .dot_unit = dot_unit,
          .weight_layout = weight_layout,
          .pack_rows = pack_rows,
          .gemm = gemm,
          .activate = activate,
          .encode = encode,
          .finite_amax = finite_amax,
          .scale_of = scale_of,
          .gather_steps = gather_steps,
          .sum_groups = sum_groups,
          .store_pairs = store_pairs,
          .reduce = reduce,
          .widen = widen,
          .narrow = narrow,
          .decode_fp8 = decode_fp8,
          .encode_fp8 = encode_fp8,
          .sum = sum,
          .dot_loop = dot_loop,
          .decode_loop = decode_loop};
}
