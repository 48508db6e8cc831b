// reduce: rows of one token summed in registers, tokens over the threads.
#include "kernels/cpu/layer_kernel.h"
#include "kernels/cpu/ops/cpu_op.h"

namespace moegauge::cpu {
namespace {

ElementCode code_of(TensorType type) {
  return type == TensorType::fp32   ? ElementCode::fp32
         : type == TensorType::bf16 ? ElementCode::bf16
                                    : ElementCode::fp16;
}

class ReduceKernel final : public OpKernel {
 public:
  ReduceKernel(const OpProblem& p, const OpContext& context)
      : layer_(p.layer),
        tokens_(p.tokens),
        code_(code_of(p.inputs[0].type)),
        table_(context.table()),
        pool_(*context.pool) {}

  void run(int, std::span<const Tensor> inputs, std::span<Tensor> outputs) override {
    const std::int64_t k = layer_.hidden_size, top_k = layer_.top_k;
    const auto* const pairs = inputs[0].bytes.data();
    const auto* const weights = inputs[1].as<float>().data();
    auto* const y = outputs[0].as<std::uint16_t>().data();
    const std::int64_t row_bytes = top_k * k * bytes_of(code_);
    over_rows(pool_, tokens_, tokens_ * row_bytes,
              [&](std::int64_t first, std::int64_t last, std::int64_t) {
                for (std::int64_t m = first; m < last; ++m) {
                  table_.weighted_sum(
                      {.code = code_,
                       .rows = pairs + m * row_bytes,
                       .weights = layer_.router_weight_on_input ? nullptr : weights + m * top_k,
                       .count = top_k,
                       .columns = k,
                       .out = narrow_type(layer_.dtype),
                       .y = y + m * k});
                }
              });
  }

 private:
  const Layer layer_;
  const std::int64_t tokens_;
  const ElementCode code_;
  const OpTable& table_;
  ThreadPool& pool_;
};

class ReduceOp final : public CpuOp {
 public:
  std::string_view name() const override { return "reduce"; }
  std::unique_ptr<OpKernel> make(const OpProblem& problem, const Config&, const OpContext& context,
                                 const OpWeights*) const override {
    return std::make_unique<ReduceKernel>(problem, context);
  }
};

}  // namespace

const CpuOp& reduce_op() {
  static const ReduceOp op;
  return op;
}

}  // namespace moegauge::cpu
