// What is asked: one rank's Mixture-of-Experts layer, independent of number formats and of how a
// kernel computes it.
//
//   x [M, K]   h = act(w13[e] x + w13_bias[e])   y[m] = sum_t weight[m,t] (w2[e] h + w2_bias[e])
//
// w13 [E, 2N, K] (gate and up), w2 [E, K, N], topk_ids [M, top_k] global expert ids with -1 for a
// dropped pair, topk_weights [M, top_k] fp32. All matrices are row-major, K (or N) contiguous.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace moegauge {

// The element type of x and y.
enum class Dtype : std::uint8_t { bf16, fp16 };

enum class ActivationKind : std::uint8_t {
  silu_and_mul,       // g * sigmoid(g) * u
  gelu_and_mul,       // g * Phi(g) * u, Phi by erf
  gelu_tanh_and_mul,  // the tanh approximation of the above (Hendrycks and Gimpel, 2016)
  swiglu_clamped,     // g = min(g, limit), u = clamp(u, +-limit): (u + beta) * g * sigmoid(alpha g)
};

struct Activation {
  ActivationKind kind = ActivationKind::silu_and_mul;
  double alpha = 1.702;  // the three are read by swiglu_clamped only
  double beta = 1.0;
  double limit = 7.0;
};

enum class GateUpOrder : std::uint8_t {
  concatenated,  // rows [0, N) gate, rows [N, 2N) up
  interleaved,   // row 2n gate, row 2n + 1 up
};

struct Layer {
  std::int64_t experts = 0;            // E, global
  std::int64_t top_k = 0;              //
  std::int64_t hidden_size = 0;        // K
  std::int64_t intermediate_size = 0;  // N of this rank, after tensor parallelism
  // N before it; 0: the same. A rank's columns of w2 keep the scale groups of the whole matrix
  // where a group index scatters them (act_order).
  std::int64_t whole_intermediate_size = 0;
  Dtype dtype = Dtype::bf16;
  Activation activation = {};
  GateUpOrder gate_up_order = GateUpOrder::concatenated;
  // The router weight multiplies the first GEMM's side and not the second's (Llama-4). Legal only
  // with top_k = 1 and without w13 bias.
  bool router_weight_on_input = false;
  bool expert_bias = false;  // w13_bias [E, 2N] and w2_bias [E, K], fp32
  bool adds_w2_bias = true;  // false on tensor-parallel ranks other than 0
  // [experts]: global id -> local id, or -1 where another rank holds it. Empty: all are local.
  std::vector<std::int32_t> expert_map = {};

  // Experts whose weights this rank holds.
  std::int64_t local_experts() const;
  // Local id of a global id; -1 where it is dropped (id -1) or held elsewhere.
  std::int32_t local_id(std::int32_t global_id) const;
};

// One call's inputs. Views: the caller keeps them alive. x holds the bits of layer.dtype.
struct LayerInputs {
  std::int64_t tokens = 0;                 // M
  std::span<const std::uint16_t> x;        // [M, K]
  std::span<const std::int32_t> topk_ids;  // [M, top_k]
  std::span<const float> topk_weights;     // [M, top_k]
};

}  // namespace moegauge
