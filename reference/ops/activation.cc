// activation: what stands between the two GEMMs, alone.
//
//   gate_up [M, 2N] in the layer's dtype: N gates, then N ups, or (interleaved) one of each in turn
//
//   output [M, N] = act(gate, up), rounded once. The function with its parameters and the order are
//   the model's. M counts rows: a layer of M' tokens has M' * top_k of them.
#include "reference/activation.h"

#include <algorithm>
#include <cmath>

#include "reference/base/thread_pool.h"
#include "reference/ops/judging.h"
#include "reference/schemes/half.h"

namespace moegauge {
namespace {

class ActivationOp final : public Op {
 public:
  std::string_view name() const override { return "activation"; }

  std::optional<std::string> describe(OpProblem& p) const override {
    const TensorType dtype = tensor_type(p.layer.dtype);
    p.inputs = {{"gate_up", dtype, {p.tokens, 2 * p.layer.intermediate_size}}};
    p.outputs = {{"output", dtype, {p.tokens, p.layer.intermediate_size}}};
    return std::nullopt;
  }

  void infer(const GivenTensors& given, OpProblem& p) const override {
    p.tokens = given.extent("gate_up", 2, 0, p.tokens);
    p.layer.intermediate_size = given.extent("gate_up", 2, 1) / 2;
    ignore_experts(p.layer);
    ignore_sizes({&p.layer.hidden_size});
  }

  std::vector<Tensor> draw_inputs(const OpProblem& p, const OpDraw& draw) const override {
    auto inputs = make_tensors(p.inputs);
    std::ranges::copy(draw_rows(p, draw, p.tokens, 2 * p.layer.intermediate_size),
                      inputs[0].as<std::uint16_t>().begin());
    return inputs;
  }

  OpWork work(const OpProblem& p, std::span<const Tensor>) const override {
    return {.operand_bytes = bytes_of(p.inputs) + bytes_of(p.outputs)};
  }

  std::unique_ptr<const OpTruth> truth(const OpProblem& p, std::span<const Tensor>,
                                       std::span<const Tensor> inputs, const OpDraw*,
                                       int threads) const override {
    const std::int64_t n = p.layer.intermediate_size;
    const bool interleaved = p.layer.gate_up_order == GateUpOrder::interleaved;
    const std::vector<double> gate_up = decoded(tensor_named(inputs, "gate_up"));
    RowsTruth rows = {.rows = p.tokens,
                      .cols = n,
                      .exact = std::vector<double>(static_cast<std::size_t>(p.tokens * n)),
                      .magnitude = {},
                      .dtype = p.layer.dtype,
                      .limits = half_limits(p.layer.dtype).over(p.tokens),
                      .quantization_of = "the output before it is rounded",
                      .not_compared = rows_with_infinity(gate_up, p.tokens)};
    ThreadPool pool(threads);
    pool.parallel_for(p.tokens, [&](std::int64_t m) {
      const double* const row = gate_up.data() + m * 2 * n;
      for (std::int64_t j = 0; j < n; ++j) {
        const double gate = interleaved ? row[2 * j] : row[j];
        const double up = interleaved ? row[2 * j + 1] : row[n + j];
        rows.exact[static_cast<std::size_t>(m * n + j)] = activate(p.layer.activation, gate, up);
      }
    });
    rows.magnitude = rows.exact;  // nothing is summed
    for (double& value : rows.magnitude) value = std::fabs(value);
    return std::make_unique<MatrixTruth>(std::move(rows));
  }
};

}  // namespace

const Op& activation_op() {
  static const ActivationOp op;
  return op;
}

}  // namespace moegauge
