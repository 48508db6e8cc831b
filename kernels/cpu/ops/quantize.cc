// quantize: rows over the threads; one pass for the largest magnitude of a unit, which stays in the
// first cache, and one for its codes.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/layer_kernel.h"
#include "kernels/cpu/ops/cpu_op.h"

namespace moegauge::cpu {
namespace {

std::optional<ByteFormat> format_of(Element element) {
  switch (element) {
    case Element::e4m3fn:
      return ByteFormat::e4m3fn;
    case Element::e4m3fnuz:
      return ByteFormat::e4m3fnuz;
    case Element::int8:
      return ByteFormat::int8;
    default:
      return std::nullopt;
  }
}

// E8M0 code of the smallest power of two under which amax is at most `maximum`, or of amax's own.
std::uint8_t e8m0_code(ScaleRule::Kind kind, float amax, float maximum) {
  if (!(amax > 0)) return 0;
  int amax_exponent = 0, maximum_exponent = 0;
  const float amax_fraction = std::frexp(amax, &amax_exponent);
  const float maximum_fraction = std::frexp(maximum, &maximum_exponent);
  const int exponent =
      kind == ScaleRule::Kind::power_of_two_floor
          ? amax_exponent - 1
          : amax_exponent - maximum_exponent + (amax_fraction > maximum_fraction ? 1 : 0);
  return static_cast<std::uint8_t>(std::clamp(exponent, -127, 127) + 127);
}

class QuantizeKernel final : public OpKernel {
 public:
  QuantizeKernel(const OpProblem& p, const OpContext& context)
      : traits_(p.scheme->traits().activation),
        tokens_(p.tokens),
        columns_(p.layer.hidden_size),
        type_(narrow_type(p.layer.dtype)),
        format_(*format_of(traits_.element)),
        maximum_(static_cast<float>(traits_.highest)),
        group_(traits_.unit.cols > 0 ? traits_.unit.cols : columns_),
        table_(context.table()),
        pool_(*context.pool),
        part_amax_(static_cast<std::size_t>(context.pool->threads())) {}

  void run(int, std::span<const Tensor> inputs, std::span<Tensor> outputs) override {
    const std::uint16_t* const x = inputs[0].as<std::uint16_t>().data();
    const auto q = outputs[0].as<std::uint8_t>();
    const bool one = traits_.unit == ScaleUnit{0, 0};
    if (one) {
      const auto scale = outputs[1].as<float>();
      scale[0] = traits_.static_scale ? inputs[1].as<float>()[0] : tensor_scale(x);
      over_tokens([&](std::int64_t first, std::int64_t last, std::int64_t) {
        encode(x, first * columns_, (last - first) * columns_, scale[0], q.data());
      });
      return;
    }
    over_tokens([&](std::int64_t first, std::int64_t last, std::int64_t) {
      for (std::int64_t m = first; m < last; ++m) quantize_row(x, m, q.data(), outputs[1]);
    });
  }

 private:
  template <typename Fn>
  void over_tokens(const Fn& fn) {
    over_rows(pool_, tokens_, tokens_ * columns_ * 3, fn);
  }

  float linear_scale(float amax) const {
    const ScaleRule& rule = traits_.rule;
    return std::max(std::max(amax, rule.amax_floor) / maximum_, rule.scale_floor);
  }

  float tensor_scale(const std::uint16_t* x) {
    std::ranges::fill(part_amax_, 0.0f);
    over_tokens([&](std::int64_t first, std::int64_t last, std::int64_t part) {
      part_amax_[static_cast<std::size_t>(part)] =
          table_.finite_amax(type_, x + first * columns_, (last - first) * columns_);
    });
    return linear_scale(*std::ranges::max_element(part_amax_));
  }

  void quantize_row(const std::uint16_t* x, std::int64_t m, std::uint8_t* q, Tensor& scales) const {
    const std::int64_t groups = (columns_ + group_ - 1) / group_;
    for (std::int64_t g = 0; g < groups; ++g) {
      const std::int64_t begin = m * columns_ + g * group_;
      const std::int64_t n = std::min(group_, columns_ - g * group_);
      const float amax = table_.finite_amax(type_, x + begin, n);
      const auto unit = static_cast<std::size_t>(m * groups + g);
      float scale;
      if (traits_.scale == ScaleKind::e8m0) {
        const std::uint8_t code = e8m0_code(traits_.rule.kind, amax, maximum_);
        scales.as<std::uint8_t>()[unit] = code;
        scale = std::ldexp(1.0f, code - 127);
      } else {
        scale = linear_scale(amax);
        scales.as<float>()[unit] = scale;
      }
      encode(x, begin, n, scale, q);
    }
  }

  void encode(const std::uint16_t* x, std::int64_t begin, std::int64_t n, float scale,
              std::uint8_t* q) const {
    table_.quantize({.type = type_,
                     .x = x + begin,
                     .n = n,
                     .scale = scale,
                     .format = format_,
                     .maximum = maximum_,
                     .q = q + begin});
  }

  const OperandTraits traits_;
  const std::int64_t tokens_, columns_;
  const NarrowType type_;
  const ByteFormat format_;
  const float maximum_;
  const std::int64_t group_;
  const OpTable& table_;
  ThreadPool& pool_;
  std::vector<float> part_amax_;
};

class QuantizeOp final : public CpuOp {
 public:
  std::string_view name() const override { return "quantize"; }

  std::optional<Refusal> refuses(const OpProblem& problem) const override {
    const OperandTraits traits = problem.scheme->traits().activation;
    const bool by_rows = traits.unit.rows == 1 || traits.unit == ScaleUnit{0, 0};
    if (format_of(traits.element) && by_rows) return std::nullopt;
    return Refusal{RefusalReason::scheme,
                   "the cpu backend quantises activations to E4M3 and int8, per token, group of a "
                   "token or tensor, not as " +
                       problem.scheme->name() + " does"};
  }

  std::unique_ptr<OpKernel> make(const OpProblem& problem, const Config&, const OpContext& context,
                                 const OpWeights*) const override {
    return std::make_unique<QuantizeKernel>(problem, context);
  }
};

}  // namespace

const CpuOp& quantize_op() {
  static const QuantizeOp op;
  return op;
}

}  // namespace moegauge::cpu
