// reduce: each token's expert outputs summed in the order of its slots, weighed by the router.
//
//   pairs [M, top_k, K] in the layer's dtype, or fp32 (`pair_out`); topk_weights [M, top_k], not
//   read where the router weight was applied to the input
//
//   output [M, K] = sum over t of topk_weights[m, t] * pairs[m, t], rounded once
#include <algorithm>
#include <cmath>

#include "reference/base/thread_pool.h"
#include "reference/dtype.h"
#include "reference/ops/judging.h"
#include "reference/schemes/half.h"

namespace moegauge {
namespace {

class Reduce final : public Op {
 public:
  std::string_view name() const override { return "reduce"; }
  std::vector<OpField> fields() const override {
    return {{.name = "pair_out",
             .words = {"activation_dtype", "fp32"},
             .fallback = std::string("activation_dtype")}};
  }

  std::optional<std::string> describe(OpProblem& p) const override {
    const TensorType dtype = tensor_type(p.layer.dtype);
    const TensorType pairs = p.word("pair_out") == "fp32" ? TensorType::fp32 : dtype;
    p.inputs = {{"pairs", pairs, {p.tokens, p.layer.top_k, p.layer.hidden_size}},
                {"topk_weights", TensorType::fp32, {p.tokens, p.layer.top_k}}};
    p.outputs = {{"output", dtype, {p.tokens, p.layer.hidden_size}}};
    return std::nullopt;
  }

  void infer(const GivenTensors& given, OpProblem& p) const override {
    p.tokens = given.extent("pairs", 3, 0, given.extent("topk_weights", 2, 0, p.tokens));
    p.layer.hidden_size = given.extent("pairs", 3, 2);
    if (p.layer.top_k == 0) {
      p.layer.top_k = given.extent("pairs", 3, 1, given.extent("topk_weights", 2, 1));
    }
    ignore_sizes({&p.layer.intermediate_size});
    p.layer.experts = std::max(p.layer.experts, p.layer.top_k);
  }

  std::vector<Tensor> draw_inputs(const OpProblem& p, const OpDraw& draw) const override {
    auto inputs = make_tensors(p.inputs);
    const auto bits = draw_rows(p, draw, p.tokens * p.layer.top_k, p.layer.hidden_size);
    if (p.inputs[0].type == TensorType::fp32) {
      // Values that no 16-bit dtype holds, so that rounding them would show.
      const auto pairs = inputs[0].as<float>();
      for (std::size_t i = 0; i < bits.size(); ++i) {
        pairs[i] = to_float(p.layer.dtype, bits[i]) * 0.70710678f;
      }
    } else {
      std::ranges::copy(bits, inputs[0].as<std::uint16_t>().begin());
    }
    std::ranges::copy(draw_weights_of_pairs(p, draw), inputs[1].as<float>().begin());
    return inputs;
  }

  OpWork work(const OpProblem& p, std::span<const Tensor>) const override {
    return {.operand_bytes = bytes_of(p.inputs) + bytes_of(p.outputs)};
  }

  std::unique_ptr<const OpTruth> truth(const OpProblem& p, std::span<const Tensor>,
                                       std::span<const Tensor> inputs, const OpDraw*,
                                       int threads) const override {
    const std::int64_t top_k = p.layer.top_k, k = p.layer.hidden_size;
    const std::vector<double> pairs = decoded(tensor_named(inputs, "pairs"));
    const auto weights = tensor_named(inputs, "topk_weights").as<float>();
    RowsTruth rows = {.rows = p.tokens,
                      .cols = k,
                      .exact = std::vector<double>(static_cast<std::size_t>(p.tokens * k)),
                      .magnitude = std::vector<double>(static_cast<std::size_t>(p.tokens * k)),
                      .dtype = p.layer.dtype,
                      .limits = half_limits(p.layer.dtype).over(p.tokens),
                      .quantization_of = "the output before it is rounded",
                      .not_compared = rows_with_infinity(pairs, p.tokens)};
    ThreadPool pool(threads);
    pool.parallel_for(p.tokens, [&](std::int64_t m) {
      for (std::int64_t t = 0; t < top_k; ++t) {
        const std::int64_t pair = m * top_k + t;
        const double weight =
            p.layer.router_weight_on_input ? 1.0 : weights[static_cast<std::size_t>(pair)];
        for (std::int64_t j = 0; j < k; ++j) {
          const double term = weight * pairs[static_cast<std::size_t>(pair * k + j)];
          rows.exact[static_cast<std::size_t>(m * k + j)] += term;
          rows.magnitude[static_cast<std::size_t>(m * k + j)] += std::fabs(term);
        }
      }
    });
    return std::make_unique<MatrixTruth>(std::move(rows));
  }
};

}  // namespace

const Op& reduce_op() {
  static const Reduce op;
  return op;
}

}  // namespace moegauge
