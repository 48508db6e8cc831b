// Slots, clocks and poison of single ops; what is computed is each op's own (cpu_op.h).
#include <algorithm>
#include <chrono>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include "kernels/cpu/code_hash.h"
#include "kernels/cpu/machine.h"
#include "kernels/cpu/ops/cpu_op.h"
#include "kernels/cpu/plan_parts.h"
#include "reference/base/fnv1a.h"

namespace moegauge::cpu {
namespace {

KernelIdentity make_identity(const OpProblem& problem, const Config& config, IsaLevel level) {
  std::string text = std::string(code_hash()) + " " + std::string(to_string(level)) + " " +
                     problem.op + " " + problem.scheme->name();
  for (const auto& [key, value] : config.values) text += " " + key + "=" + std::to_string(value);
  return {problem.scheme->name(), {}, fnv1a_hex(text)};
}

Fault error(std::string sentence) { return {FaultKind::error, std::move(sentence)}; }

class CpuOpPlan final : public OpPlan {
 public:
  CpuOpPlan(const OpProblem& problem, KernelIdentity identity, OpContext context,
            std::shared_ptr<ThreadPool> pool, std::unique_ptr<OpKernel> kernel, int sets, int slots)
      : problem_(problem),
        identity_(std::move(identity)),
        context_(context),
        pool_(std::move(pool)),
        kernel_(std::move(kernel)),
        sets_(sets),
        slots_(static_cast<std::size_t>(slots)) {
    for (Slot& slot : slots_) {
      slot.inputs = make_tensors(problem.inputs);
      slot.outputs = make_tensors(problem.outputs);
    }
  }

  const KernelIdentity& identity() const override { return identity_; }
  int slots() const override { return static_cast<int>(slots_.size()); }

  std::optional<Fault> set_inputs(int slot, std::span<const Tensor> inputs) override {
    if (auto fault = bad_slot(slot)) return fault;
    if (auto fault = unlike(inputs, problem_.inputs)) return fault;
    if (auto sentence = kernel_->wrong(inputs)) return error(std::move(*sentence));
    slots_[static_cast<std::size_t>(slot)].inputs.assign(inputs.begin(), inputs.end());
    return std::nullopt;
  }

  std::optional<Fault> poison() override {
    for (Slot& slot : slots_) {
      for (Tensor& output : slot.outputs) moegauge::poison(output);
    }
    kernel_->poison();
    return std::nullopt;
  }

  Expected<double, Fault> run(const RunRequest& request) override {
    if (problem_.tokens == 0) return run_nothing();
    using Clock = std::chrono::steady_clock;
    double seconds = 0;
    try {
      for (std::int64_t call = 0; call < request.calls; ++call) {
        Slot& slot = slots_[request.slot_of(call, slots_.size())];
        const auto set = static_cast<int>(request.set_of(call, static_cast<std::size_t>(sets_)));
        if (request.cache == Cache::cold) evictor_.evict(context_.kernels(), *pool_);
        const auto begin = Clock::now();
        kernel_->run(set, slot.inputs, slot.outputs);
        seconds += std::chrono::duration<double>(Clock::now() - begin).count();
      }
    } catch (const std::bad_alloc&) {
      return Unexpected{
          Fault{FaultKind::out_of_memory, out_of_memory("a buffer that the run needs")}};
    }
    return seconds;
  }

  std::optional<Fault> fetch(int slot, std::span<Tensor> outputs) override {
    if (auto fault = bad_slot(slot)) return fault;
    if (auto fault = unlike(outputs, problem_.outputs)) return fault;
    const Slot& s = slots_[static_cast<std::size_t>(slot)];
    std::copy(s.outputs.begin(), s.outputs.end(), outputs.begin());
    return std::nullopt;
  }

 private:
  struct Slot {
    std::vector<Tensor> inputs, outputs;
  };

  std::optional<Fault> bad_slot(int slot) const {
    if (slot >= 0 && slot < slots()) return std::nullopt;
    return error("slot " + std::to_string(slot) + " of a plan with " + std::to_string(slots()) +
                 " slots");
  }

  static std::optional<Fault> unlike(std::span<const Tensor> tensors,
                                     std::span<const TensorSpec> specs) {
    if (tensors.size() != specs.size()) {
      return error(std::to_string(tensors.size()) + " tensors where " +
                   std::to_string(specs.size()) + " belong");
    }
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (tensors[i].spec == specs[i]) continue;
      return error("the tensor " + tensors[i].spec.name + " is not what the plan's " +
                   specs[i].name + " is, by name, type or shape");
    }
    return std::nullopt;
  }

  // No tokens: nothing is launched, and outputs are what they are for nothing.
  Expected<double, Fault> run_nothing() {
    for (Slot& slot : slots_) kernel_->run(0, slot.inputs, slot.outputs);
    return 0.0;
  }

  const OpProblem problem_;
  const KernelIdentity identity_;
  const OpContext context_;
  const std::shared_ptr<ThreadPool> pool_;
  const std::unique_ptr<OpKernel> kernel_;
  const int sets_;
  std::vector<Slot> slots_;
  CacheEvictor evictor_;
};

class CpuLoadedOp final : public LoadedOp {
 public:
  CpuLoadedOp(const CpuOp& op, const OpProblem& problem, std::span<const Tensor> weights, int sets,
              IsaLevel level)
      : op_(op),
        level_(level),
        sets_(sets),
        weights_(op.load(problem, weights, sets, {level, pool(machine().processors).get()})) {}

  int weight_sets() const override { return sets_; }

  Expected<std::unique_ptr<OpPlan>, Fault> plan(const OpProblem& problem, const Config& config,
                                                int slots) override {
    if (slots < 1) {
      return Unexpected{error("a plan with " + std::to_string(slots) + " slots; at least 1")};
    }
    if (auto refusal = op_.refuses_config(problem, config)) {
      return Unexpected{error(std::move(refusal->sentence))};
    }
    Config whole = op_.default_config(problem);
    for (const auto& [key, value] : config.values) whole.values[key] = value;
    try {
      const std::shared_ptr<ThreadPool> threads = pool(op_threads(whole));
      const OpContext context = {level_, threads.get()};
      return std::unique_ptr<OpPlan>(std::make_unique<CpuOpPlan>(
          problem, make_identity(problem, whole, level_), context, threads,
          op_.make(problem, whole, context, weights_.get()), sets_, slots));
    } catch (const std::bad_alloc&) {
      return Unexpected{Fault{FaultKind::out_of_memory, out_of_memory("the op's operands")}};
    }
  }

 private:
  std::shared_ptr<ThreadPool> pool(int threads) {
    std::shared_ptr<ThreadPool>& pool = pools_[threads];
    if (!pool) pool = std::make_shared<ThreadPool>(threads);
    return pool;
  }

  const CpuOp& op_;
  const IsaLevel level_;
  const int sets_;
  std::map<int, std::shared_ptr<ThreadPool>> pools_;
  const std::unique_ptr<const OpWeights> weights_;
};

}  // namespace

Expected<std::unique_ptr<LoadedOp>, Fault> load_cpu_op(const OpProblem& problem,
                                                       std::span<const Tensor> weights, int sets,
                                                       IsaLevel level) {
  try {
    return std::unique_ptr<LoadedOp>(std::make_unique<CpuLoadedOp>(
        *find_cpu_op(problem.op), problem, weights, std::max(sets, 1), level));
  } catch (const std::bad_alloc&) {
    return Unexpected{Fault{FaultKind::out_of_memory, out_of_memory("the op's weights")}};
  }
}

}  // namespace moegauge::cpu
