// What one instruction-set level offers to single ops, beside kernel_table.h: rows of elementwise
// work. The same bits on every level.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa/kernel_table.h"

namespace moegauge::cpu {

enum class ElementCode : std::uint8_t { bf16, fp16, fp32 };
constexpr std::int64_t bytes_of(ElementCode code) { return code == ElementCode::fp32 ? 4 : 2; }

// y[j] = sum over t of weights[t] * rows[t][j] in the order of t, rounded once. `rows` holds
// `count` rows of `columns` elements one after the other; weights may be nullptr (all 1).
struct WeightedSumArgs {
  ElementCode code = ElementCode::bf16;
  const void* rows = nullptr;
  const float* weights = nullptr;
  std::int64_t count = 0, columns = 0;
  NarrowType out = NarrowType::bf16;
  std::uint16_t* y = nullptr;
};

// out[n] = act(gate[n], up[n]) of one row: gate_up holds n gates, then n ups, or alternates them.
struct GateUpArgs {
  NarrowType type = NarrowType::bf16;
  const std::uint16_t* gate_up = nullptr;
  std::int64_t n = 0;
  bool interleaved = false;
  ActivationFunction function = ActivationFunction::silu;
  float alpha = 0, beta = 0, limit = 0;
  std::uint16_t* out = nullptr;
};

enum class ByteFormat : std::uint8_t { e4m3fn, e4m3fnuz, int8 };

// q[i] = rne(x[i] / scale), saturating at +-maximum (int8: 127).
struct QuantizeArgs {
  NarrowType type = NarrowType::bf16;
  const std::uint16_t* x = nullptr;
  std::int64_t n = 0;
  float scale = 1;
  ByteFormat format = ByteFormat::e4m3fn;
  float maximum = 0;  // of e4m3fnuz
  std::uint8_t* q = nullptr;
};

// What experts are chosen on: the logit, or its sigmoid plus the correction bias. A NaN, of the
// logit or of the sum, stands for -infinity.
enum class SelectionScore : std::uint8_t { logit, sigmoid };
// What a chosen expert weighs.
enum class RouterWeight : std::uint8_t {
  softmax_of_all,
  softmax_of_chosen,
  sigmoid,
  sigmoid_shares,  // over the sum of those chosen
};

// One token: its top_k experts of the top_groups groups (equal runs of experts) with the largest
// sums of their two best scores, ties to the lower id.
struct RouteArgs {
  const float* logits = nullptr;
  const float* bias = nullptr;  // or nullptr
  std::int64_t experts = 0, top_k = 0, groups = 1, top_groups = 1;
  SelectionScore score = SelectionScore::logit;
  RouterWeight weight = RouterWeight::softmax_of_all;
  float scaling_factor = 1;
  float* scratch = nullptr;  // route_scratch() floats
  std::int32_t* ids = nullptr;
  float* weights = nullptr;
};
// Scores, group scores and the chosen logits, each with room for a whole vector at its end.
constexpr std::int64_t route_scratch(std::int64_t experts, std::int64_t groups,
                                     std::int64_t top_k) {
  return experts + groups + top_k + std::int64_t{3} * kVector;
}

struct OpTable {
  void (*weighted_sum)(const WeightedSumArgs& args);
  void (*gate_up)(const GateUpArgs& args);
  float (*finite_amax)(NarrowType type, const std::uint16_t* x, std::int64_t n);
  void (*quantize)(const QuantizeArgs& args);
  void (*route)(const RouteArgs& args);
};

const OpTable& portable_ops();
#if defined(__x86_64__)
const OpTable& avx2_ops();
const OpTable& avx512_ops();
#endif

}  // namespace moegauge::cpu
