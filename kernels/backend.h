// The one seam between the harness and everything that computes a layer. No templates, no CUDA or
// HIP: a backend is one folder behind this header and one line in kernels/CMakeLists.txt.
//
// Life of a measurement:  Backend::refuses -> load (weights resident, packed, several copies) ->
// LoadedLayer::plan (compiled for tokens and config, workspaces allocated) -> set_inputs per slot
// -> poison -> run -> fetch.
// Single ops (reference/op_problem.h) live the same life over tables of named tensors:
// Backend::refuses_op -> load_op -> LoadedOp::plan -> OpPlan.
//
// Library code never prints or exits. Faults come back as values; a kernel that takes the process
// down is the worker's business (harness/worker).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/base/expected.h"
#include "reference/layer.h"
#include "reference/numerics.h"
#include "reference/op_problem.h"
#include "reference/schemes/scheme.h"
#include "reference/tensor.h"

namespace moegauge {

// How it is done: tile sizes and the like, by the keys of tuned-config files (BLOCK_SIZE_M,
// num_threads, ...). Each backend turns this into a typed aggregate of its own and refuses what it
// does not know.
struct Config {
  std::map<std::string, std::int64_t> values = {};
  friend bool operator==(const Config&, const Config&) = default;
};

// What a backend is asked to serve; `tokens` 0 asks about the layer in general.
struct Problem {
  Layer layer;
  std::shared_ptr<const Scheme> scheme;
  std::int64_t tokens = 0;
};

enum class RefusalReason : std::uint8_t {
  device_absent,
  op,
  scheme,
  activation,
  router_weight_on_input,
  gate_up_order,
  expert_bias,
  shape,
  memory,
  instruction_set,
  config_unknown_key,
  config_value,
};
std::string_view to_string(RefusalReason reason);

struct Refusal {
  RefusalReason reason = RefusalReason::shape;
  std::string sentence;  // what is refused and what would be served, with the numbers
};

// Something went wrong on the device or in the runtime, as opposed to a refusal by rule.
enum class FaultKind : std::uint8_t { out_of_memory, infrastructure, error };
struct Fault {
  FaultKind kind = FaultKind::error;
  std::string sentence;
};

struct Availability {
  bool present = false;
  std::string detail = {};  // "AVX-512 BF16, 2 threads", or "no driver (libcuda.so.1 not found)"
  std::string remedy = {};  // where it is not present: how to get it
};

// Nothing volatile (no clocks): the key under which baselines are kept.
struct Device {
  std::string name;  // NVIDIA_H200, or the CPU's model
  std::string arch;  // sm_90, gfx942, avx512_bf16, ...
  std::int64_t memory_bytes = 0;
  std::int64_t last_level_cache_bytes = 0;
  int units = 0;  // threads used, multiprocessors
  // Where tuned files serve a class of devices: the class, as in their names. A file's `device`
  // metadata still says where it was measured, and elsewhere the record says `stale`.
  std::string tuned_class = {};
  const std::string& tuned_name() const { return tuned_class.empty() ? name : tuned_class; }
};

// Rates measured by the backend itself, now, on this machine; 0 where not measured.
struct Ceilings {
  double read_bytes_per_s = 0;  // plain sum over memory, all units
  double dot_flops_per_s =
      0;  // register-only loop of the dot instruction that the scheme's kernel uses
};

// What a device tells about itself at a moment; each value only where it tells it.
struct DeviceState {
  std::optional<double> clock_mhz = {}, memory_clock_mhz = {}, power_watts = {},
                        temperature_celsius = {};
  // Why clocks are held down; empty where nothing does.
  std::vector<std::string> throttle_reasons = {};
};

enum class Cache : std::uint8_t { cold_weights, cold, hot };
enum class Launch : std::uint8_t { eager, graph };

// Consecutive calls: both slots and weight sets rotate, or stay for Cache::hot.
struct RunRequest {
  std::int64_t calls = 1;
  Cache cache = Cache::cold_weights;
  Launch launch = Launch::eager;
  std::int64_t first_set = 0;  // of call 0
  // Announced to a profiler that waits for it (CUDA: cuProfilerStart and cuProfilerStop), where the
  // device has such.
  bool profiled = false;

  std::size_t slot_of(std::int64_t call, std::size_t slots) const { return turns(call) % slots; }
  std::size_t set_of(std::int64_t call, std::size_t sets) const {
    return (static_cast<std::size_t>(first_set) + turns(call)) % sets;
  }
  std::size_t turns(std::int64_t call) const {
    return cache == Cache::hot ? 0 : static_cast<std::size_t>(call);
  }
};

// What was built for one (tokens, config).
struct KernelIdentity {
  std::string executed_scheme;  // what really ran, e.g. "fp8_block" for a converted "mxfp8"
  Numerics numerics;
  std::string hash;  // of the code and configuration compiled, 16 hex digits
};

// What is timed, whatever it computes: inputs in slots, outputs beside them.
class Runnable {
 public:
  virtual ~Runnable() = default;
  virtual const KernelIdentity& identity() const = 0;
  virtual int slots() const = 0;
  // Fills every slot's output and all workspaces with NaN. The harness looks at the outputs after
  // each call, and runs other inputs before a check: what is left of them in a workspace is wrong.
  virtual std::optional<Fault> poison() = 0;
  // Runs the calls and returns their total seconds by the device's own clock.
  virtual Expected<double, Fault> run(const RunRequest& request) = 0;
  // Mean seconds of each stage of one call, by events between its launches: calls one after
  // another, launched eagerly, no stage begun before the one ahead of it has ended, which is not
  // how run() goes about it: they add up to more than a call takes. Empty where stages cannot be
  // told apart.
  virtual Expected<std::map<std::string, double>, Fault> stage_seconds(
      const RunRequest& /*request*/) {
    return std::map<std::string, double>();
  }
  // What the device tells right now, asked after every timed row; nothing where it tells nothing.
  virtual std::optional<DeviceState> state() const { return std::nullopt; }
};

class Plan : public Runnable {
 public:
  // Copies the inputs of one slot; inputs.tokens equals the plan's.
  virtual std::optional<Fault> set_inputs(int slot, const LayerInputs& inputs) = 0;
  // y [tokens, K] of one slot, bits of layer.dtype.
  virtual std::optional<Fault> fetch(int slot, std::span<std::uint16_t> y) = 0;
};

class LoadedLayer {
 public:
  virtual ~LoadedLayer() = default;
  virtual std::int64_t weight_bytes() const = 0;  // of one set, as resident
  virtual int weight_sets() const = 0;
  virtual Expected<std::unique_ptr<Plan>, Fault> plan(std::int64_t tokens, const Config& config,
                                                      int slots) = 0;
};

class OpPlan : public Runnable {
 public:
  // Copies the inputs of one slot: the tensors of problem.inputs, in that order.
  virtual std::optional<Fault> set_inputs(int slot, std::span<const Tensor> inputs) = 0;
  // The outputs of one slot, into tensors of problem.outputs.
  virtual std::optional<Fault> fetch(int slot, std::span<Tensor> outputs) = 0;
};

class LoadedOp {
 public:
  virtual ~LoadedOp() = default;
  virtual int weight_sets() const = 0;
  // `problem` is the one loaded, with tokens, inputs and outputs of this plan.
  virtual Expected<std::unique_ptr<OpPlan>, Fault> plan(const OpProblem& problem,
                                                        const Config& config, int slots) = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  virtual Availability availability() const = 0;
  virtual Device device() const = 0;  // meaningful only if present
  // Other processes that hold the device right now, by their ids, as far as it tells.
  virtual std::vector<unsigned> other_processes() const { return {}; }
  // What tuned files' metadata may name beside the device: "driver", "compiler", where there are
  // such. Where a file was tuned with another, the record says `stale`.
  virtual std::map<std::string, std::string> toolchain() const { return {}; }
  virtual std::optional<Refusal> refuses(const Problem& problem) const = 0;
  // What its kernels refuse on devices of an architecture (kernels/arch.h), here or not.
  virtual std::optional<Refusal> refuses_on(std::string_view arch, const Problem& problem) const;
  // Whether Launch::graph is served; where not, such a request runs eagerly and the record says so.
  virtual bool serves_graphs() const { return false; }
  virtual Config default_config(const Problem& problem) const = 0;
  virtual std::optional<Refusal> refuses_config(const Problem& problem,
                                                const Config& config) const = 0;
  // What `tune` holds against the default for these tokens, the likely ones first: configs that
  // refuses_config lets pass, with the keys that a tuned file is to have, the same ones in each.
  // Empty: there is nothing to choose.
  virtual std::vector<Config> candidate_configs(const Problem&) const { return {}; }
  // Compiles what LoadedLayer::plan would, where that takes time, so that it is at hand by then.
  // Called from several threads at once; what it cannot do, plan() will say.
  virtual void compile_ahead(const Problem&, const Config&) const {}
  // Where shipped tuned files of this backend live, relative to the source or install root;
  // empty if it has none.
  virtual std::string_view config_folder() const = 0;
  virtual Expected<std::unique_ptr<LoadedLayer>, Fault> load(const Problem& problem,
                                                             const ExpertSource& experts,
                                                             int weight_sets) const = 0;
  virtual Expected<Ceilings, Fault> measure_ceilings(const Problem& problem) const = 0;

  // Single ops; a backend serves none of them until it says so.
  virtual std::optional<Refusal> refuses_op(const OpProblem& problem) const;
  virtual Config default_op_config(const OpProblem&) const { return {}; }
  virtual std::optional<Refusal> refuses_op_config(const OpProblem& problem,
                                                   const Config& config) const;
  // `weights`: the tensors of problem.weights, which may be gone when this returns.
  virtual Expected<std::unique_ptr<LoadedOp>, Fault> load_op(const OpProblem& problem,
                                                             std::span<const Tensor> weights,
                                                             int weight_sets) const;
  // Read rate, and the dot rate where the op has dot products.
  virtual Expected<Ceilings, Fault> measure_op_ceilings(const OpProblem& problem) const;
};

// Every backend built in, in the order in which `auto` tries them.
std::span<const Backend* const> all_backends();

}  // namespace moegauge
