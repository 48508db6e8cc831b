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

DotUnit dot_unit(ActivationCodec codec) {
  return kBf16Dot && codec != ActivationCodec::fp16 ? DotUnit::bf16_pair : DotUnit::fp32;
}

WeightLayout weight_layout(WeightCodec codec, DotUnit) {
  switch (codec) {
    case WeightCodec::bf16:
      return {2, 2, kPairs};
    case WeightCodec::fp16:
      return {2, 2, kOrders.by_run2};
    case WeightCodec::e4m3fn:
      return {1, 4, kE4m3Order};
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
    case WeightCodec::bf16:
      return gemm_of<WeightCodec::bf16>(args);
    case WeightCodec::fp16:
      return gemm_of<WeightCodec::fp16>(args);
    case WeightCodec::e4m3fn:
      return gemm_of<WeightCodec::e4m3fn>(args);
  }
}

double dot_loop(DotUnit unit, std::int64_t iterations) {
  if constexpr (kBf16Dot) {
    if (unit == DotUnit::bf16_pair) return dot_loop_as<DotUnit::bf16_pair>(iterations);
  }
  return dot_loop_as<DotUnit::fp32>(iterations);
}

constexpr KernelTable make_table(const char* name) {
  return {name,        MOEGAUGE_LANES > 4,
          dot_unit,    weight_layout,
          pack_rows,   gemm,
          activate,    encode,
          store_pairs, reduce,
          widen,       narrow,
          decode_fp8,  encode_fp8,
          sum,         dot_loop};
}
