// grouped_gemm: every expert's rows times that expert's matrix, in the layouts that engines use.
//
//   gemm    gate_up: K' = K, N' = 2N, a row is a token's x; down: K' = N, N' = K, a row is a pair's
//   b [experts of this rank, N', K'], b_scale, b_zero_point, b_g_idx: the scheme's canonical
//   storage a [rows, K'], a_scale: in the layer's dtype, or codes and scales as `quantize` makes
//   them
//
//   layout  sorted      a [M or M * top_k, K'] untouched; sorted_token_ids, expert_ids and
//                       num_tokens_post_padded as `align` gives them with remote experts skipped,
//                       in blocks of block_size: an entry is a pair p, whose row of a is p / top_k
//                       (gate_up) or p (down). output [M * top_k, N'], row p; of pairs that no
//                       entry names it is not defined
//           contiguous  a [M * top_k, K'] holds each expert's rows in turn, rows_per_expert of
//           them;
//                       output [M * top_k, N'], not defined beyond them
//           batched     a [experts, M, K'], of which rows_per_expert are used; output [experts, M,
//           N']
//
// output = sum over K' of a * b, rounded once to the layer's dtype.
#include <algorithm>
#include <string>
#include <vector>

#include "reference/dtype.h"
#include "reference/ops/grouped_rows.h"
#include "reference/ops/grouped_truth.h"
#include "reference/ops/grouped_weights.h"
#include "reference/ops/judging.h"
#include "reference/ops/quantization.h"

namespace moegauge {
namespace {

class GroupedGemm final : public Op {
 public:
  std::string_view name() const override { return "grouped_gemm"; }
  bool repeats_tokens() const override { return true; }
  std::vector<OpField> fields() const override {
    return {{.name = "layout",
             .words = {"sorted", "contiguous", "batched"},
             .fallback = std::string("sorted")},
            {.name = "gemm", .words = {"gate_up", "down"}, .fallback = std::string("gate_up")},
            {.name = "block_size", .low = 1, .high = 65536, .fallback = std::int64_t{64}}};
  }

  std::optional<std::string> describe(OpProblem& p) const override {
    const GroupedShape shape = grouped_shape(p);
    const OperandTraits a = p.scheme->traits().activation;
    const std::int64_t pairs = p.tokens * p.layer.top_k, block = p.number("block_size");
    if (std::max(shape.rows, aligned_room(pairs, shape.experts, block)) > INT32_MAX) {
      return std::to_string(shape.rows) + " rows are more than 32 bits count";
    }
    p.weights = grouped_weights(p);
    const bool batched = p.word("layout") == "batched";
    const auto matrix = [&](std::int64_t rows, std::int64_t cols) {
      return batched ? std::vector<std::int64_t>{shape.experts, p.tokens, cols}
                     : std::vector<std::int64_t>{rows, cols};
    };
    const TensorType dtype = tensor_type(p.layer.dtype);
    const bool plain = a.scale == ScaleKind::none;
    p.inputs = {{"a", plain ? dtype : code_type(a.element), matrix(shape.rows, shape.contracted)}};
    if (!plain) {
      TensorSpec scale =
          activation_scale_spec("a_scale", a, UnitGrid(shape.rows, shape.contracted, a.unit));
      if (scale.shape.size() > 1) scale.shape = matrix(shape.rows, scale.shape[1]);
      p.inputs.push_back(std::move(scale));
    }
    if (p.word("layout") == "sorted") {
      const std::int64_t room = aligned_room(pairs, shape.experts, block);
      p.inputs.push_back({"sorted_token_ids", TensorType::int32, {room}});
      p.inputs.push_back({"expert_ids", TensorType::int32, {(room + block - 1) / block}});
      p.inputs.push_back({"num_tokens_post_padded", TensorType::int32, {1}});
    } else {
      p.inputs.push_back({"rows_per_expert", TensorType::int32, {shape.experts}});
    }
    p.outputs = {{"output", dtype, matrix(pairs, shape.columns)}};
    return std::nullopt;
  }

  void infer(const GivenTensors& given, OpProblem& p) const override {
    infer_grouped_gemm(given, p);
  }

  std::vector<Tensor> draw_weights(const OpProblem& p, const OpDraw& draw) const override {
    return draw_grouped_weights(p, draw);
  }

  std::vector<Tensor> draw_inputs(const OpProblem& p, const OpDraw& draw) const override {
    const DrawnRows drawn = draw_grouped_rows(p, draw);
    auto inputs = make_tensors(p.inputs);
    put_rows(p, draw, laid_out(p, drawn), inputs);
    place_rows(p, drawn.topk_ids, inputs);
    return inputs;
  }

  // Which rows of a are used is the given counts' matter: all are drawn.
  std::vector<Tensor> draw_beside(const OpProblem& p, const OpDraw& draw,
                                  std::vector<Tensor> given) const override {
    if (find_tensor(given, "rows_per_expert") == nullptr || find_tensor(given, "a") != nullptr) {
      return Op::draw_beside(p, draw, std::move(given));
    }
    const GroupedShape shape = grouped_shape(p);
    const auto bits = draw_rows(p, draw, shape.rows, shape.contracted);
    std::vector<float> a(bits.size());
    std::ranges::transform(bits, a.begin(),
                           [&](std::uint16_t b) { return to_float(p.layer.dtype, b); });
    auto drawn = make_tensors(p.inputs);
    put_rows(p, draw, a, drawn);
    for (Tensor& tensor : drawn) {
      if (!tensor.spec.name.starts_with("a") || find_tensor(given, tensor.spec.name)) continue;
      given.push_back(std::move(tensor));
    }
    return Op::draw_beside(p, draw, std::move(given));
  }

  void check(const OpProblem& p, std::span<const Tensor> inputs) const override {
    row_uses(p, inputs);
  }

  OpWork work(const OpProblem& p, std::span<const Tensor> inputs) const override {
    const GroupedShape shape = grouped_shape(p);
    const auto uses = row_uses(p, inputs);
    std::vector<bool> experts(static_cast<std::size_t>(shape.experts));
    std::vector<bool> sources(static_cast<std::size_t>(shape.rows));
    for (const RowUse& use : uses) {
      experts[static_cast<std::size_t>(use.expert)] = true;
      sources[static_cast<std::size_t>(use.source)] = true;
    }
    const auto share = [](const std::vector<bool>& of) {
      return of.empty() ? 0.0
                        : static_cast<double>(std::ranges::count(of, true)) /
                              static_cast<double>(of.size());
    };
    double rows_bytes = 0;
    for (const TensorSpec& spec : p.inputs) {
      if (spec.name.starts_with("a")) rows_bytes += static_cast<double>(spec.bytes());
    }
    const auto used = static_cast<double>(uses.size());
    const auto n = static_cast<double>(shape.columns), k = static_cast<double>(shape.contracted);
    return {.weight_bytes = share(experts) * bytes_of(p.weights),
            .operand_bytes = share(sources) * rows_bytes + used * n * 2,
            .flops = 2 * used * n * k};
  }

  std::unique_ptr<const OpTruth> truth(const OpProblem& p, std::span<const Tensor> weights,
                                       std::span<const Tensor> inputs, const OpDraw* drawn,
                                       int threads) const override {
    return grouped_truth(p, weights, inputs, drawn, threads);
  }

  std::optional<std::string> not_finite(const OpProblem& p, std::span<const Tensor> inputs,
                                        std::span<const Tensor> outputs) const override {
    const std::int64_t n = grouped_shape(p).columns;
    const std::uint16_t exponent = p.layer.dtype == Dtype::bf16 ? 0x7F80 : 0x7C00;
    const auto y = outputs[0].as<std::uint16_t>();
    for (const RowUse& use : row_uses(p, inputs)) {
      for (std::int64_t j = use.output * n; j < (use.output + 1) * n; ++j) {
        if ((y[static_cast<std::size_t>(j)] & exponent) != exponent) continue;
        return "output[" + std::to_string(use.output) + ", " + std::to_string(j % n) + "]";
      }
    }
    return std::nullopt;
  }

 private:
  // a, and its scale where the scheme quantises it.
  static void put_rows(const OpProblem& p, const OpDraw& draw, const std::vector<float>& a,
                       std::vector<Tensor>& inputs) {
    const GroupedShape shape = grouped_shape(p);
    const OperandTraits traits = p.scheme->traits().activation;
    if (traits.scale == ScaleKind::none) {
      std::ranges::transform(a, inputs[0].as<std::uint16_t>().begin(),
                             [&](float v) { return to_bits(p.layer.dtype, v); });
      return;
    }
    const float given = traits.static_scale ? experts_of(p, draw)->activation_scale(shape.role) : 0;
    Quantized q =
        quantize_activations(traits, UnitGrid(shape.rows, shape.contracted, traits.unit), a, given);
    inputs[0].bytes = std::move(q.codes.bytes);
    inputs[1].bytes = std::move(q.scales.bytes);
  }
};

}  // namespace

const Op& grouped_gemm_op() {
  static const GroupedGemm op;
  return op;
}

}  // namespace moegauge
