// A backend for tests: right answers from the oracle, latencies from a script, and whatever
// misbehaviour a test asks for at a named moment.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace moegauge {

struct Script {
  std::string name = {};
  // Called when weights are loaded, when a plan is made, and before each run with its number (0 is
  // the check's first); may return a fault or never return at all.
  std::function<std::optional<Fault>()> on_load = {};
  std::function<std::optional<Fault>()> on_plan = {};
  std::function<std::optional<Fault>(int run)> on_run = {};
  // What it computes where that is not what it declares, which is Numerics{}.
  std::optional<Numerics> computes = {};
  // Changes an output after it was computed by run number `run`.
  std::function<void(std::span<std::uint16_t> y, int run)> spoil = {};
  // The same by the weight set that it was computed with.
  std::function<void(std::span<std::uint16_t> y, std::size_t set)> spoil_set = {};
  bool poisons = true;
  std::function<double()> seconds_per_call = [] { return 1e-4; };
  // Instead, where it is set: by the config that the plan was made for, and its tokens.
  std::function<double(const Config& config, std::int64_t tokens)> seconds_of = {};
  // Before each run and after it, by the config.
  std::function<std::optional<Fault>(const Config& config)> on_run_of = {};
  std::function<void(const Config& config, std::span<std::uint16_t> y)> spoil_of = {};
  std::vector<Config> candidates = {};
  std::map<std::string, double> stage_seconds = {};
  bool present = true;
  std::optional<Refusal> refusal = {};
  std::optional<Refusal> config_refusal = {};
  Ceilings ceilings = {.read_bytes_per_s = 1e12, .dot_flops_per_s = 1e13};
};

class ScriptedBackend final : public Backend {
 public:
  explicit ScriptedBackend(Script script) : script_(std::move(script)) {}

  std::string_view name() const override { return script_.name; }
  Availability availability() const override {
    return {script_.present, script_.present ? "scripted" : "no driver"};
  }
  Device device() const override;
  std::map<std::string, std::string> toolchain() const override {
    return {{"driver", "scripted 1"}, {"compiler", "scripted 2"}};
  }
  std::optional<Refusal> refuses(const Problem&) const override { return script_.refusal; }
  Config default_config(const Problem&) const override {
    return {.values = {{"BLOCK_SIZE_M", 16}}};
  }
  std::optional<Refusal> refuses_config(const Problem&, const Config&) const override {
    return script_.config_refusal;
  }
  std::vector<Config> candidate_configs(const Problem&) const override {
    return script_.candidates;
  }
  std::string_view config_folder() const override { return "kernels/scripted/configs"; }
  Expected<std::unique_ptr<LoadedLayer>, Fault> load(const Problem& problem,
                                                     const ExpertSource& experts,
                                                     int weight_sets) const override;
  Expected<Ceilings, Fault> measure_ceilings(const Problem&) const override {
    return script_.ceilings;
  }

 private:
  Script script_;
};

}  // namespace moegauge
