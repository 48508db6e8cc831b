// The CPU backend's side of a single op. One file per op defines a CpuOp and is named once in the
// list of kernels/cpu/CMakeLists.txt.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kernels/backend.h"
#include "kernels/cpu/isa/op_table.h"
#include "kernels/cpu/isa_level.h"
#include "reference/base/thread_pool.h"

namespace moegauge::cpu {

// Weights as a kernel reads them, in several equal copies.
class OpWeights {
 public:
  virtual ~OpWeights() = default;
};

// One op for given shapes and config. Same bits for any number of threads.
class OpKernel {
 public:
  virtual ~OpKernel() = default;
  virtual void run(int weight_set, std::span<const Tensor> inputs, std::span<Tensor> outputs) = 0;
  // Fills workspaces with NaN; outputs are filled by the plan.
  virtual void poison() {}
  // Why these inputs cannot be run, one sentence; looked at once, outside of what is timed.
  virtual std::optional<std::string> wrong(std::span<const Tensor>) const { return std::nullopt; }
};

struct OpContext {
  IsaLevel level = IsaLevel::portable;
  ThreadPool* pool = nullptr;
  const KernelTable& kernels() const { return cpu::kernels(level); }
  const OpTable& table() const { return op_table(level); }
};

class CpuOp {
 public:
  virtual ~CpuOp() = default;
  virtual std::string_view name() const = 0;
  virtual std::optional<Refusal> refuses(const OpProblem&) const { return std::nullopt; }
  // num_threads alone, where the op does not say otherwise.
  virtual Config default_config(const OpProblem&) const;
  virtual std::optional<Refusal> refuses_config(const OpProblem&, const Config& config) const;
  // How activations go into dot products, for the ceiling; nothing where there are none.
  virtual std::optional<DotUnit> dot_unit(const OpProblem&, const KernelTable&) const {
    return std::nullopt;
  }
  // Throws std::bad_alloc, as make does.
  virtual std::unique_ptr<const OpWeights> load(const OpProblem&, std::span<const Tensor>, int,
                                                const OpContext&) const {
    return nullptr;
  }
  virtual std::unique_ptr<OpKernel> make(const OpProblem& problem, const Config& config,
                                         const OpContext& context,
                                         const OpWeights* weights) const = 0;
};

std::span<const CpuOp* const> cpu_ops();
// nullptr where this backend has no such op.
const CpuOp* find_cpu_op(std::string_view name);

// The threads that a config asks for, or all.
int op_threads(const Config& config);

// Work on fewer bytes than this is not worth waking other threads for.
inline constexpr std::int64_t kAloneBytes = 65536;

// Calls fn(first, last, part) for stretches of [0, rows), on all threads where the work is large;
// part < pool.threads().
template <typename Fn>
void over_rows(ThreadPool& pool, std::int64_t rows, std::int64_t bytes, const Fn& fn) {
  const std::int64_t parts = bytes <= kAloneBytes ? 1 : pool.threads();
  if (parts == 1) return fn(std::int64_t{0}, rows, std::int64_t{0});
  pool.parallel_for(
      parts, [&](std::int64_t part) { fn(rows * part / parts, rows * (part + 1) / parts, part); },
      Schedule::contiguous);
}

// `level` must be supported, problem not refused.
Expected<std::unique_ptr<LoadedOp>, Fault> load_cpu_op(const OpProblem& problem,
                                                       std::span<const Tensor> weights, int sets,
                                                       IsaLevel level);

}  // namespace moegauge::cpu
