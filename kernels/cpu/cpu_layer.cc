#include "kernels/cpu/cpu_layer.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "kernels/cpu/code_hash.h"
#include "kernels/cpu/cpu_config.h"
#include "kernels/cpu/layer_kernel.h"
#include "kernels/cpu/plan_parts.h"
#include "reference/base/fnv1a.h"
#include "reference/base/process_limits.h"

namespace moegauge::cpu {
namespace {

KernelIdentity make_identity(const Problem& problem, const Served& served, IsaLevel level,
                             const CpuConfig& config) {
  std::string text =
      std::string(code_hash()) + " " + std::string(to_string(level)) + " " + problem.scheme->name();
  for (const auto& [key, value] : to_config(config).values) {
    text += " " + key + "=" + std::to_string(value);
  }
  return {problem.scheme->name(), served.recipe.numerics, fnv1a_hex(text)};
}

class CpuPlan final : public Plan {
 public:
  CpuPlan(const Problem& problem, const Served& served, IsaLevel level,
          const PackedWeights& weights, const CpuConfig& config, std::int64_t tokens, int slots,
          std::shared_ptr<ThreadPool> pool)
      : layer_(problem.layer),
        identity_(make_identity(problem, served, level, config)),
        kernels_(kernels(level)),
        weights_(weights),
        pool_(std::move(pool)),
        kernel_(layer_, served.recipe, kernels_, weights, config, tokens, *pool_),
        slots_(static_cast<std::size_t>(slots)) {
    const auto m = static_cast<std::size_t>(tokens);
    for (Slot& slot : slots_) {
      slot.x.resize(m * static_cast<std::size_t>(layer_.hidden_size));
      slot.y.resize(slot.x.size());
      slot.topk_ids.resize(m * static_cast<std::size_t>(layer_.top_k), -1);
      slot.topk_weights.resize(slot.topk_ids.size());
    }
    tokens_ = tokens;
  }

  const KernelIdentity& identity() const override { return identity_; }
  int slots() const override { return static_cast<int>(slots_.size()); }
  std::optional<Fault> set_inputs(int slot, const LayerInputs& inputs) override;
  std::optional<Fault> poison() override;
  Expected<double, Fault> run(const RunRequest& request) override;
  std::optional<Fault> fetch(int slot, std::span<std::uint16_t> y) override;

 private:
  struct Slot {
    std::vector<std::uint16_t> x, y;
    std::vector<std::int32_t> topk_ids;
    std::vector<float> topk_weights;
  };
  std::optional<Fault> bad_slot(int slot) const;

  Layer layer_;
  KernelIdentity identity_;
  const KernelTable& kernels_;
  const PackedWeights& weights_;
  std::shared_ptr<ThreadPool> pool_;
  LayerKernel kernel_;
  std::vector<Slot> slots_;
  std::int64_t tokens_ = 0;
  CacheEvictor evictor_;
};

std::optional<Fault> CpuPlan::bad_slot(int slot) const {
  if (slot >= 0 && slot < slots()) return std::nullopt;
  return Fault{FaultKind::error, "slot " + std::to_string(slot) + " of a plan with " +
                                     std::to_string(slots()) + " slots"};
}

std::optional<Fault> CpuPlan::set_inputs(int slot, const LayerInputs& inputs) {
  if (auto fault = bad_slot(slot)) return fault;
  Slot& s = slots_[static_cast<std::size_t>(slot)];
  const auto error = [](std::string sentence) {
    return Fault{FaultKind::error, std::move(sentence)};
  };
  if (inputs.tokens != tokens_ || inputs.x.size() != s.x.size() ||
      inputs.topk_ids.size() != s.topk_ids.size() ||
      inputs.topk_weights.size() != s.topk_weights.size()) {
    return error("inputs of " + std::to_string(inputs.tokens) + " tokens, " +
                 std::to_string(inputs.x.size()) + " activations and " +
                 std::to_string(inputs.topk_ids.size()) + " ids for a plan of " +
                 std::to_string(tokens_) + " tokens, " + std::to_string(s.x.size()) + " and " +
                 std::to_string(s.topk_ids.size()));
  }
  for (const std::int32_t id : inputs.topk_ids) {
    if (id < -1 || id >= layer_.experts) {
      return error("expert id " + std::to_string(id) + " lies outside [-1, " +
                   std::to_string(layer_.experts) + ")");
    }
  }
  std::ranges::copy(inputs.x, s.x.begin());
  std::ranges::copy(inputs.topk_ids, s.topk_ids.begin());
  std::ranges::copy(inputs.topk_weights, s.topk_weights.begin());
  return std::nullopt;
}

std::optional<Fault> CpuPlan::poison() {
  constexpr std::uint16_t kNan = 0x7FFF;  // in bf16 and in fp16
  for (Slot& slot : slots_) std::ranges::fill(slot.y, kNan);
  kernel_.poison();
  return std::nullopt;
}

Expected<double, Fault> CpuPlan::run(const RunRequest& request) {
  if (tokens_ == 0) return 0.0;
  using Clock = std::chrono::steady_clock;
  double seconds = 0;
  try {
    for (std::int64_t call = 0; call < request.calls; ++call) {
      Slot& slot = slots_[request.slot_of(call, slots_.size())];
      const auto sets = static_cast<std::size_t>(weights_.sets());
      const int set = static_cast<int>(request.set_of(call, sets));
      if (request.cache == Cache::cold) evictor_.evict(kernels_, *pool_);
      const auto begin = Clock::now();
      kernel_.run(set, {tokens_, slot.x, slot.topk_ids, slot.topk_weights}, slot.y);
      seconds += std::chrono::duration<double>(Clock::now() - begin).count();
    }
  } catch (const std::bad_alloc&) {
    return Unexpected{
        Fault{FaultKind::out_of_memory, out_of_memory("the buffer that empties the caches")}};
  }
  return seconds;
}

std::optional<Fault> CpuPlan::fetch(int slot, std::span<std::uint16_t> y) {
  if (auto fault = bad_slot(slot)) return fault;
  const Slot& s = slots_[static_cast<std::size_t>(slot)];
  if (y.size() != s.y.size()) {
    return Fault{FaultKind::error, "fetch into " + std::to_string(y.size()) +
                                       " elements of an output of " + std::to_string(s.y.size())};
  }
  std::ranges::copy(s.y, y.begin());
  return std::nullopt;
}

}  // namespace

CpuLoadedLayer::CpuLoadedLayer(const Problem& problem, const Served& served, IsaLevel level,
                               const ExpertSource& experts, int weight_sets)
    : problem_(problem), served_(served), level_(level) {
  weights_ =
      std::make_unique<PackedWeights>(problem_.layer, *problem_.scheme, served_, kernels(level_),
                                      experts, weight_sets, *pool(machine().processors));
}

std::shared_ptr<ThreadPool> CpuLoadedLayer::pool(int threads) {
  std::shared_ptr<ThreadPool>& pool = pools_[threads];
  if (!pool) pool = std::make_shared<ThreadPool>(threads);
  return pool;
}

Expected<std::unique_ptr<Plan>, Fault> CpuLoadedLayer::plan(std::int64_t tokens,
                                                            const Config& config, int slots) {
  const auto error = [](std::string sentence) {
    return Unexpected{Fault{FaultKind::error, std::move(sentence)}};
  };
  if (tokens < 0) return error("a plan for " + std::to_string(tokens) + " tokens; 0 or more");
  if (slots < 1) return error("a plan with " + std::to_string(slots) + " slots; at least 1");
  if (tokens > std::numeric_limits<std::int32_t>::max() / problem_.layer.top_k) {
    return error(std::to_string(tokens) + " tokens with top_k " +
                 std::to_string(problem_.layer.top_k) + " are more pairs than 32 bits count");
  }
  const auto parsed = parse_config(config, problem_.layer, served_.recipe, tokens, machine());
  if (!parsed) return error(parsed.error().sentence);
  try {
    return std::unique_ptr<Plan>(
        std::make_unique<CpuPlan>(problem_, served_, level_, *weights_, *parsed, tokens, slots,
                                  pool(static_cast<int>(parsed->num_threads))));
  } catch (const std::bad_alloc&) {
    return Unexpected{Fault{FaultKind::out_of_memory,
                            out_of_memory("workspaces for " + std::to_string(tokens) + " tokens")}};
  }
}

}  // namespace moegauge::cpu
