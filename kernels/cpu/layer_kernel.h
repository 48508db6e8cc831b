// One layer computed for a fixed number of tokens: the phases of a call over workspaces that are
// allocated once.
//
//   align     pairs sorted by expert
//   encode    x rows rounded as the scheme says                                 [M, K]
//   gate/up   per expert: w13, activation, requantisation of h in its epilogue  [pairs, N]
//   requantise  h, where its scales depend on whole rows or on all of them      [pairs, N]
//   down      per expert: w2, bias and router weight in its epilogue            [pairs, K]
//   reduce    y = the sum of each token's pairs in the order of its slots       [M, K]
//
// Every output is one chain of sums whose order depends on neither threads, tasks, block sizes nor
// other tokens: the same bits for any number of threads, any config and any batch around a token.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cpu/align.h"
#include "kernels/cpu/buffer.h"
#include "kernels/cpu/cpu_config.h"
#include "kernels/cpu/packed_weights.h"
#include "reference/base/thread_pool.h"

namespace moegauge::cpu {

NarrowType narrow_type(Dtype dtype);
ActivationFunction activation_function(ActivationKind kind);

class LayerKernel {
 public:
  // All references outlive the kernel. Throws std::bad_alloc.
  LayerKernel(const Layer& layer, const Recipe& recipe, const KernelTable& kernels,
              const PackedWeights& weights, const CpuConfig& config, std::int64_t tokens,
              ThreadPool& pool);
  ~LayerKernel();

  // y [tokens, K] in bits of the layer's dtype; inputs.tokens equals the kernel's.
  void run(int weight_set, const LayerInputs& inputs, std::span<std::uint16_t> y);
  // Fills every workspace with NaN.
  void poison();

 private:
  struct Thread;  // one thread's scratch
  struct Task {   // rows [row, row + rows) of an expert, tiles [tile, tile_end) of its matrix
    std::int64_t expert, row, rows, tile, tile_end;
  };
  struct Operand {  // activation rows of a GEMM, in steps
    Array<float> rows;
    Array<float> scales;     // [rows][groups]
    std::int64_t steps = 0;  // of one row
    std::int64_t groups = 0;
    float* row(std::int64_t r) const { return rows.data() + r * steps; }
    float* row_scales(std::int64_t r) const { return scales.data() + r * groups; }
  };

  Operand make_operand(std::int64_t rows, const MatrixLayout& layout) const;
  void widen_row(const LayerInputs& inputs, std::int64_t token, float* wide) const;
  void encode_x(const LayerInputs& inputs);
  // For a row, or the part of one that is whole scale groups.
  EncodeArgs encode_args(Role role) const;
  // For rows that all share one scale: amax(row, thread) is the largest magnitude of each.
  template <typename Fn>
  EncodeArgs encode_args_of_tensor(std::int64_t rows, std::int64_t columns, const Fn& amax);
  void requantise();
  const std::vector<Task>& make_tasks(const MatrixLayout& layout);
  // fn(task, thread) for all tasks, in one loop or in one per expert.
  template <typename Fn>
  void over_tasks(std::span<const Task> tasks, const Fn& fn);
  // The task's rows as gemm reads them, kept while consecutive tasks share them.
  void pack_activations(const Operand& operand, const MatrixLayout& layout, const std::byte* expert,
                        bool gather, const Task& task, Thread& thread) const;
  GemmArgs gemm_args(const MatrixLayout& layout, const std::byte* expert, std::int64_t tile,
                     const Task& task, const Thread& thread) const;
  void activate_columns(const std::byte* expert, const Task& part, const float* row_weight,
                        Thread& thread) const;
  void encode_columns(const Task& part, Thread& thread) const;
  void gate_up(int weight_set, const LayerInputs& inputs, const Task& task, Thread& thread);
  void down(int weight_set, const LayerInputs& inputs, const Task& task, Thread& thread);
  void reduce(std::span<std::uint16_t> y);
  // fn(row, thread) over rows of a matrix.
  template <typename Fn>
  void over_rows(std::int64_t rows, std::int64_t columns, const Fn& fn);

  const Layer& layer_;
  const Recipe recipe_;
  const KernelTable& kernels_;
  const PackedWeights& weights_;
  const CpuConfig config_;
  const std::int64_t tokens_;
  const DotUnit unit_;
  ThreadPool& pool_;
  // Whether h is encoded by whole rows, after all of the first GEMM.
  const bool h_by_rows_;
  const std::int64_t h_columns_;  // of h that are activated and then rounded together

  Alignment alignment_;
  std::vector<Task> tasks_;
  Operand x_, h_;
  Array<float> wide_h_;    // [pairs, N padded to whole vectors], where h is encoded by rows
  Array<float> row_amax_;  // where a scale depends on all rows
  Array<float> pairs_;     // [pairs, K]
  std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace moegauge::cpu
