// quantize: activations on their way into a GEMM, by the scheme's rule for activations.
//
//   x [M, K] in the layer's dtype; x_scale [1], where the scheme's activation scale is calibrated
//
//   q [M, K] codes; scale: [M, groups of K], [M, 1] or [1], as many elements as the scheme says
//   share one, fp32 or E8M0
//
// q = rne(x / scale) by fp32 division, saturating; a NaN stays one where the format has one. Scales
// are right within two units of fp32's last place, E8M0 exactly. A code is right where it is that
// of some quotient within 2^-21 of x / scale: kernels multiply by 1 / scale, and a tie may then
// fall the other way.
#include <algorithm>
#include <cmath>

#include "reference/base/input_error.h"
#include "reference/ops/judging.h"
#include "reference/ops/quantization.h"
#include "reference/schemes/units.h"

namespace moegauge {
namespace {

class QuantizeTruth final : public OpTruth {
 public:
  QuantizeTruth(const OperandTraits& traits, const UnitGrid& grid, std::vector<float> x,
                Quantized right)
      : traits_(traits), grid_(grid), x_(std::move(x)), right_(std::move(right)) {}

  std::vector<Tensor> answers() const override {
    return {named("emulated_q", right_.codes), named("emulated_scale", right_.scales)};
  }

  OpErrors judge(std::span<const Tensor> outputs) const override {
    EntryCount scales, codes;
    for_each_unit(grid_, [&](std::size_t unit, const Rectangle& r) {
      judge_scale(scales, outputs[1], unit);
      for_each_element(grid_, r, [&](std::size_t i) {
        judge_code(codes, outputs[0].as<std::uint8_t>()[i], i, scale_at(right_.scales, unit));
      });
    });
    return errors(outputs, scales, codes);
  }

 private:
  static constexpr double kScaleSlack = 0x1p-22, kQuotientSlack = 0x1p-21;

  void judge_scale(EntryCount& count, const Tensor& scales, std::size_t unit) const {
    const double found = scale_at(scales, unit), right = scale_at(right_.scales, unit);
    const double slack = scales.spec.type == TensorType::e8m0 ? 0 : kScaleSlack * right;
    count.expect(std::fabs(found - right) <= slack, static_cast<std::int64_t>(unit), [&] {
      return "scale[" + std::to_string(unit) + "] is " + std::to_string(found) + ", " +
             std::to_string(right) + " is right";
    });
  }

  void judge_code(EntryCount& count, std::uint8_t found, std::size_t i, double scale) const {
    const double quotient = x_[i] / scale;
    const auto code = [&](double slack) {
      return encode_activation(traits_, static_cast<float>(quotient * (1 + slack)));
    };
    const std::uint8_t expected = right_.codes.as<std::uint8_t>()[i];
    const bool right = found == expected || found == code(kQuotientSlack) ||
                       found == code(-kQuotientSlack) || (is_nan(expected) && is_nan(found));
    count.expect(right, static_cast<std::int64_t>(i), [&] {
      return entry_is("q", static_cast<std::int64_t>(i), found, expected) + " (codes)";
    });
  }

  // Either sign of it.
  bool is_nan(std::uint8_t code) const {
    return (traits_.element == Element::e4m3fn && (code & 0x7Fu) == 0x7Fu) ||
           (traits_.element == Element::e4m3fnuz && code == 0x80u);
  }

  // Distances say nothing of rows that hold an infinity, or a NaN that no code stands for; their
  // codes and scales are looked at like all others.
  std::vector<std::uint8_t> not_compared(const std::vector<double>& x,
                                         const std::vector<double>& right) const {
    auto rows = rows_with_infinity(x, grid_.rows);
    const auto width = static_cast<std::size_t>(grid_.cols);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i]) && !std::isnan(right[i])) rows[i / width] = 1;
    }
    return rows;
  }

  OpErrors errors(std::span<const Tensor> outputs, const EntryCount& scales,
                  const EntryCount& codes) const {
    const std::vector<double> found = dequantized(grid_, outputs[0], outputs[1]);
    const std::vector<double> right = dequantized(grid_, right_.codes, right_.scales);
    const std::vector<double> x(x_.begin(), x_.end());
    std::vector<double> magnitude = x;
    for (double& value : magnitude) value = std::fabs(value);
    const auto left_out = not_compared(x, right);
    const auto against = [&](const std::vector<double>& a, const std::vector<double>& b) {
      return measure_error(a, b, magnitude, grid_.rows, grid_.cols, {}, Dtype::bf16, left_out);
    };
    OpErrors errors = {against(found, right), against(right, x), against(found, x),
                       "activations before quantisation", scales.sentence()};
    errors.implementation.matched = codes.metrics().matched;
    if (!errors.wrong) errors.wrong = codes.sentence();
    return errors;
  }

  const OperandTraits traits_;
  const UnitGrid grid_;
  const std::vector<float> x_;
  const Quantized right_;
};

class Quantize final : public Op {
 public:
  std::string_view name() const override { return "quantize"; }
  bool has_exact_inputs() const override { return true; }

  std::optional<std::string> describe(OpProblem& p) const override {
    const OperandTraits traits = p.scheme->traits().activation;
    if (traits.scale == ScaleKind::none) {
      return "the scheme " + p.scheme->name() + " leaves activations as they are";
    }
    const std::int64_t k = p.layer.hidden_size;
    const UnitGrid grid(p.tokens, k, traits.unit);
    p.inputs = {{"x", tensor_type(p.layer.dtype), {p.tokens, k}}};
    if (traits.static_scale) p.inputs.push_back({"x_scale", TensorType::fp32, {1}});
    p.outputs = {{"q", code_type(traits.element), {p.tokens, k}},
                 activation_scale_spec("scale", traits, grid)};
    return std::nullopt;
  }

  void infer(const GivenTensors& given, OpProblem& p) const override {
    p.tokens = given.extent("x", 2, 0, p.tokens);
    p.layer.hidden_size = given.extent("x", 2, 1);
    ignore_experts(p.layer);
    ignore_sizes({&p.layer.intermediate_size});
  }

  std::vector<Tensor> draw_inputs(const OpProblem& p, const OpDraw& draw) const override {
    auto inputs = make_tensors(p.inputs);
    Layer layer = p.layer;
    layer.top_k = 1;
    const OwnedInputs drawn = generate_inputs(layer, draw.distribution, {}, p.tokens, draw.seed,
                                              draw.stream, p.scheme.get());
    std::ranges::copy(drawn.x, inputs[0].as<std::uint16_t>().begin());
    if (inputs.size() > 1) {  // as calibrated for those layers
      const auto experts = generated_experts(p.layer, p.scheme, draw.distribution, draw.seed);
      inputs[1].as<float>()[0] = experts->activation_scale(Role::w13);
    }
    return inputs;
  }

  void check(const OpProblem&, std::span<const Tensor> inputs) const override {
    const Tensor* given = find_tensor(inputs, "x_scale");
    if (given == nullptr) return;
    const float scale = given->as<float>()[0];
    if (!(scale > 0 && std::isfinite(scale))) {
      throw InputError("x_scale", "a scale of " + std::to_string(scale), "a positive number");
    }
  }

  OpWork work(const OpProblem& p, std::span<const Tensor>) const override {
    return {.operand_bytes = bytes_of(p.inputs) + bytes_of(p.outputs)};
  }

  std::unique_ptr<const OpTruth> truth(const OpProblem& p, std::span<const Tensor>,
                                       std::span<const Tensor> inputs, const OpDraw*,
                                       int) const override {
    check(p, inputs);
    const OperandTraits traits = p.scheme->traits().activation;
    const UnitGrid grid(p.tokens, p.layer.hidden_size, traits.unit);
    const std::vector<double> wide = decoded(tensor_named(inputs, "x"));
    const std::vector<float> x(wide.begin(), wide.end());
    const Tensor* given = find_tensor(inputs, "x_scale");
    Quantized right = quantize_activations(traits, grid, x, given ? given->as<float>()[0] : 0);
    return std::make_unique<QuantizeTruth>(traits, grid, x, std::move(right));
  }
};

}  // namespace

const Op& quantize_op() {
  static const Quantize op;
  return op;
}

}  // namespace moegauge
