#include "harness/testing/scripted_backend.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "reference/base/fnv1a.h"
#include "reference/formats/bf16.h"
#include "reference/formats/fp16.h"
#include "reference/inputs.h"
#include "reference/oracle.h"

namespace moegauge {
namespace {

// 16 hex digits, another for every config.
std::string hash_of(const Config& config) {
  std::string text;
  for (const auto& [key, value] : config.values) text += key + "=" + std::to_string(value) + " ";
  return fnv1a_hex(text);
}

// The oracle's answers to inputs that were asked about before, by the plan before this one mostly:
// x and ids tell inputs apart.
using Answers = std::map<std::pair<std::vector<std::uint16_t>, std::vector<std::int32_t>>,
                         std::vector<std::uint16_t>>;

class ScriptedPlan final : public Plan {
 public:
  ScriptedPlan(const Script& script, const Problem& problem, const ExpertSource& experts,
               std::int64_t tokens, const Config& config, int slots, int sets, Answers& answers)
      : script_(script),
        config_(config),
        problem_(problem),
        experts_(experts),
        identity_{problem.scheme->name(), Numerics{}, hash_of(config)},
        sets_(static_cast<std::size_t>(sets)),
        answers_(answers),
        slots_(static_cast<std::size_t>(slots)) {
    for (Slot& slot : slots_) {
      slot.y.resize(static_cast<std::size_t>(tokens * problem.layer.hidden_size));
    }
  }

  const KernelIdentity& identity() const override { return identity_; }
  int slots() const override { return static_cast<int>(slots_.size()); }

  std::optional<Fault> set_inputs(int slot, const LayerInputs& inputs) override {
    Slot& s = slots_[static_cast<std::size_t>(slot)];
    s.inputs = {inputs.tokens,
                {inputs.x.begin(), inputs.x.end()},
                {inputs.topk_ids.begin(), inputs.topk_ids.end()},
                {inputs.topk_weights.begin(), inputs.topk_weights.end()}};
    s.answer.clear();
    return std::nullopt;
  }

  std::optional<Fault> poison() override {
    if (!script_.poisons) return std::nullopt;
    for (Slot& slot : slots_) std::ranges::fill(slot.y, std::uint16_t{0x7FFF});
    return std::nullopt;
  }

  Expected<double, Fault> run(const RunRequest& request) override {
    const int number = runs_++;
    if (script_.on_run) {
      if (auto fault = script_.on_run(number)) return Unexpected{std::move(*fault)};
    }
    if (script_.on_run_of) {
      if (auto fault = script_.on_run_of(config_)) return Unexpected{std::move(*fault)};
    }
    // Of each slot, the last call is the one that a fetch sees.
    std::map<std::size_t, std::int64_t> last_calls;
    for (std::int64_t i = 0; i < request.calls; ++i)
      last_calls[request.slot_of(i, slots_.size())] = i;
    for (const auto& [index, call] : last_calls) {
      Slot& slot = slots_[index];
      if (slot.answer.empty()) {
        auto& known = answers_[{slot.inputs.x, slot.inputs.topk_ids}];
        if (known.empty()) known = answer(slot.inputs);
        slot.answer = known;
      }
      slot.y = slot.answer;
      if (script_.spoil) script_.spoil(slot.y, number);
      if (script_.spoil_of) script_.spoil_of(config_, slot.y);
      if (script_.spoil_set) script_.spoil_set(slot.y, request.set_of(call, sets_));
    }
    const auto tokens = static_cast<std::int64_t>(slots_[0].y.size()) / problem_.layer.hidden_size;
    const double seconds =
        script_.seconds_of ? script_.seconds_of(config_, tokens) : script_.seconds_per_call();
    return seconds * static_cast<double>(request.calls);
  }

  Expected<std::map<std::string, double>, Fault> stage_seconds(const RunRequest&) override {
    return script_.stage_seconds;
  }

  std::optional<Fault> fetch(int slot, std::span<std::uint16_t> y) override {
    std::ranges::copy(slots_[static_cast<std::size_t>(slot)].y, y.begin());
    return std::nullopt;
  }

 private:
  struct Slot {
    OwnedInputs inputs;
    std::vector<std::uint16_t> y, answer;
  };

  std::vector<std::uint16_t> answer(const OwnedInputs& inputs) const {
    const Truth truth =
        compute_truth(problem_.layer, *problem_.scheme,
                      script_.computes.value_or(identity_.numerics), experts_, inputs.view(), 1);
    std::vector<std::uint16_t> y(truth.emulated.size());
    std::ranges::transform(truth.emulated, y.begin(), [this](double value) {
      return problem_.layer.dtype == Dtype::bf16 ? double_to_bf16(value) : double_to_fp16(value);
    });
    return y;
  }

  const Script& script_;
  const Config config_;
  const Problem problem_;
  const ExpertSource& experts_;
  const KernelIdentity identity_;
  const std::size_t sets_;
  Answers& answers_;
  std::vector<Slot> slots_;
  int runs_ = 0;
};

class ScriptedLayer final : public LoadedLayer {
 public:
  ScriptedLayer(const Script& script, const Problem& problem, const ExpertSource& experts, int sets)
      : script_(script), problem_(problem), experts_(experts), sets_(sets) {}

  std::int64_t weight_bytes() const override { return 1; }
  int weight_sets() const override { return sets_; }
  Expected<std::unique_ptr<Plan>, Fault> plan(std::int64_t tokens, const Config& config,
                                              int slots) override {
    if (script_.on_plan) {
      if (auto fault = script_.on_plan()) return Unexpected{std::move(*fault)};
    }
    return std::unique_ptr<Plan>(std::make_unique<ScriptedPlan>(script_, problem_, experts_, tokens,
                                                                config, slots, sets_, answers_));
  }

 private:
  const Script& script_;
  const Problem problem_;
  const ExpertSource& experts_;
  int sets_;
  Answers answers_;
};

}  // namespace

Device ScriptedBackend::device() const {
  return {.name = "Scripted",
          .arch = "none",
          .memory_bytes = 1 << 30,
          .last_level_cache_bytes = 1 << 20,
          .units = 1};
}

Expected<std::unique_ptr<LoadedLayer>, Fault> ScriptedBackend::load(const Problem& problem,
                                                                    const ExpertSource& experts,
                                                                    int weight_sets) const {
  if (script_.on_load) {
    if (auto fault = script_.on_load()) return Unexpected{std::move(*fault)};
  }
  return std::unique_ptr<LoadedLayer>(
      std::make_unique<ScriptedLayer>(script_, problem, experts, weight_sets));
}

}  // namespace moegauge
