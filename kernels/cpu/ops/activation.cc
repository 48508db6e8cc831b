// activation: rows over the threads.
#include "kernels/cpu/layer_kernel.h"
#include "kernels/cpu/ops/cpu_op.h"

namespace moegauge::cpu {
namespace {

class ActivationKernel final : public OpKernel {
 public:
  ActivationKernel(const OpProblem& p, const OpContext& context)
      : layer_(p.layer), tokens_(p.tokens), table_(context.table()), pool_(*context.pool) {}

  void run(int, std::span<const Tensor> inputs, std::span<Tensor> outputs) override {
    const std::int64_t n = layer_.intermediate_size;
    const Activation& activation = layer_.activation;
    GateUpArgs args = {.type = narrow_type(layer_.dtype),
                       .n = n,
                       .interleaved = layer_.gate_up_order == GateUpOrder::interleaved,
                       .function = activation_function(activation.kind),
                       .alpha = static_cast<float>(activation.alpha),
                       .beta = static_cast<float>(activation.beta),
                       .limit = static_cast<float>(activation.limit)};
    const auto* const gate_up = inputs[0].as<std::uint16_t>().data();
    auto* const out = outputs[0].as<std::uint16_t>().data();
    over_rows(pool_, tokens_, tokens_ * n * 6,
              [&](std::int64_t first, std::int64_t last, std::int64_t) {
                GateUpArgs row = args;
                for (std::int64_t m = first; m < last; ++m) {
                  row.gate_up = gate_up + m * 2 * n;
                  row.out = out + m * n;
                  table_.gate_up(row);
                }
              });
  }

 private:
  const Layer layer_;
  const std::int64_t tokens_;
  const OpTable& table_;
  ThreadPool& pool_;
};

class ActivationCpuOp final : public CpuOp {
 public:
  std::string_view name() const override { return "activation"; }
  std::unique_ptr<OpKernel> make(const OpProblem& problem, const Config&, const OpContext& context,
                                 const OpWeights*) const override {
    return std::make_unique<ActivationKernel>(problem, context);
  }
};

}  // namespace

const CpuOp& activation_op() {
  static const ActivationCpuOp op;
  return op;
}

}  // namespace moegauge::cpu
