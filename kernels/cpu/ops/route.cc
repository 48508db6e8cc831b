// route: one token at a time in vectors, tokens over the threads.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/buffer.h"
#include "kernels/cpu/ops/cpu_op.h"

namespace moegauge::cpu {
namespace {

SelectionScore score_of(RoutingRule rule) {
  return rule == RoutingRule::grouped_sigmoid ? SelectionScore::sigmoid : SelectionScore::logit;
}

RouterWeight weight_of(const Router& router) {
  switch (router.rule) {
    case RoutingRule::softmax:
      return router.renormalize ? RouterWeight::softmax_of_chosen : RouterWeight::softmax_of_all;
    case RoutingRule::softmax_after_topk:
      return RouterWeight::softmax_of_chosen;
    case RoutingRule::grouped_sigmoid:
      return router.renormalize ? RouterWeight::sigmoid_shares : RouterWeight::sigmoid;
    case RoutingRule::sigmoid_top1:
      return RouterWeight::sigmoid;
  }
  return RouterWeight::softmax_of_all;
}

class RouteKernel final : public OpKernel {
 public:
  RouteKernel(const OpProblem& p, const OpContext& context)
      : router_(p.router),
        tokens_(p.tokens),
        table_(context.table()),
        pool_(*context.pool),
        scratch_per_part_((route_scratch(p.router.experts, p.router.groups, p.router.top_k) + 15) /
                          16 * 16),
        scratch_(scratch_per_part_ * context.pool->threads()) {}

  void run(int, std::span<const Tensor> inputs, std::span<Tensor> outputs) override {
    const std::int64_t experts = router_.experts, slots = router_.slots();
    const float* const logits = inputs[0].as<float>().data();
    RouteArgs args = {
        .bias = inputs.size() > 1 ? inputs[1].as<float>().data() : nullptr,
        .experts = experts,
        .top_k = router_.top_k,
        .groups = score_of(router_.rule) == SelectionScore::sigmoid ? router_.groups : 1,
        .top_groups = router_.top_groups,
        .score = score_of(router_.rule),
        .weight = weight_of(router_),
        .scaling_factor = static_cast<float>(router_.scaling_factor)};
    std::int32_t* const ids = outputs[0].as<std::int32_t>().data();
    float* const weights = outputs[1].as<float>().data();
    // Each logit is looked at about once per choice.
    const std::int64_t bytes = tokens_ * experts * 4 * (1 + router_.top_k / 2);
    over_rows(pool_, tokens_, bytes, [&](std::int64_t first, std::int64_t last, std::int64_t part) {
      RouteArgs row = args;
      row.scratch = scratch_.data() + part * scratch_per_part_;
      for (std::int64_t m = first; m < last; ++m) {
        row.logits = logits + m * experts;
        row.ids = ids + m * slots;
        row.weights = weights + m * slots;
        table_.route(row);
        for (std::int64_t s = 0; s < router_.shared_experts; ++s) {
          row.ids[router_.top_k + s] = static_cast<std::int32_t>(experts + s);
          row.weights[router_.top_k + s] = 1.0f;
        }
      }
    });
  }

  void poison() override { std::ranges::fill(scratch_.span(), std::nanf("")); }

 private:
  const Router router_;
  const std::int64_t tokens_;
  const OpTable& table_;
  ThreadPool& pool_;
  const std::int64_t scratch_per_part_;
  const Array<float> scratch_;
};

class RouteOp final : public CpuOp {
 public:
  std::string_view name() const override { return "route"; }
  std::unique_ptr<OpKernel> make(const OpProblem& problem, const Config&, const OpContext& context,
                                 const OpWeights*) const override {
    return std::make_unique<RouteKernel>(problem, context);
  }
};

}  // namespace

const CpuOp& route_op() {
  static const RouteOp op;
  return op;
}

}  // namespace moegauge::cpu
