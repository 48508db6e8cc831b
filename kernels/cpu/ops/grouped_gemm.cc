// grouped_gemm: the rows of each expert over its packed weights, as the layer's own GEMMs are done
// (kernels/cpu/layer_kernel.h), without what a layer fuses into them.
//
//   place    rows grouped by expert: which row of a, which row of the output
//   encode   the rows of a that are used, into steps
//   multiply per expert: blocks of rows over tiles of columns, rounded as they are stored
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/cpu_config.h"
#include "kernels/cpu/layer_kernel.h"
#include "kernels/cpu/ops/cpu_op.h"
#include "kernels/cpu/ops/grouped_experts.h"
#include "kernels/cpu/ops/grouped_rows.h"
#include "reference/formats/e8m0.h"

namespace moegauge::cpu {
namespace {

class GroupedGemmKernel final : public OpKernel {
 public:
  GroupedGemmKernel(const OpProblem& p, const CpuConfig& config, const OpContext& context,
                    const PackedExperts& weights);

  void run(int weight_set, std::span<const Tensor> inputs, std::span<Tensor> outputs) override;
  void poison() override;
  std::optional<std::string> wrong(std::span<const Tensor> inputs) const override {
    return rows_.wrong(inputs);
  }

 private:
  struct Task {  // rows [row, row + rows) of an expert, tiles [tile, tile_end) of its matrix
    std::int64_t expert, row, rows, tile, tile_end;
  };
  struct Thread {
    Array<float> wide;           // one row of a
    Array<float> packed;         // activations of a task
    Array<float> packed_scales;  // [groups][rows]
    Array<float> packed_sums;    // [groups][rows]
    Array<float> gathered, sums, panel, c;
    std::vector<const float*> rows;
    std::int64_t holds_row = -1;  // what `packed` holds
    const float* a = nullptr;
  };

  std::int64_t contracted(const std::byte* expert) const {
    return layout_.reordered() ? std::ssize(layout_.packed_from(expert)) : layout_.elements();
  }

  void hold_rows();
  void encode(const Tensor& a, const Tensor* scales);
  void widen(const Tensor& a, std::int64_t row, float* out) const;
  float scale_of(const Tensor& scales, std::int64_t row, std::int64_t group) const;
  void make_tasks();
  void pack(const Task& task, const std::byte* expert, Thread& thread) const;
  void multiply(const Task& task, const std::byte* expert, Thread& thread,
                std::uint16_t* output) const;

  const std::int64_t experts_;
  const std::int64_t columns_, elements_;  // of the output, of a row of a
  const Recipe recipe_;
  const CpuConfig config_;
  const KernelTable& kernels_;
  const PackedExperts& weights_;
  const MatrixLayout& layout_;
  const DotUnit unit_;
  const NarrowType type_;
  ThreadPool& pool_;
  const std::int64_t steps_, groups_;  // of one encoded row; groups_ of its scales

  GroupedRows rows_;
  std::vector<Task> tasks_;
  Array<float> encoded_, encoded_scales_;
  std::vector<Thread> threads_;
};

GroupedGemmKernel::GroupedGemmKernel(const OpProblem& p, const CpuConfig& config,
                                     const OpContext& context, const PackedExperts& weights)
    : experts_(p.layer.local_experts()),
      columns_(columns_of(p)),
      elements_(contracted_of(p)),
      recipe_(recipe_of(p)),
      config_(config),
      kernels_(context.kernels()),
      weights_(weights),
      layout_(weights.layout()),
      unit_(kernels_.dot_unit(recipe_.activation)),
      type_(narrow_type(p.layer.dtype)),
      pool_(*context.pool),
      steps_(layout_.elements() / elements_per_step(unit_)),
      groups_(recipe_.activation_scale == ActivationScale::none ? 0 : layout_.groups()),
      rows_(p),
      encoded_(std::ssize(rows_.sources()) * steps_),
      encoded_scales_(std::ssize(rows_.sources()) * groups_),
      threads_(static_cast<std::size_t>(context.pool->threads())) {
  const std::int64_t pairs = p.outputs[0].elements() / std::max<std::int64_t>(columns_, 1);
  const std::int64_t rows = std::min(config.block_m, std::max<std::int64_t>(pairs, 1));
  for (Thread& t : threads_) {
    t.wide = Array<float>(elements_);
    t.packed = Array<float>(rows * steps_);
    t.packed_scales = Array<float>(rows * groups_);
    if (recipe_.zero_points) {
      t.packed_sums = Array<float>(rows * layout_.groups());
      t.sums = Array<float>(layout_.groups());
    }
    if (layout_.reordered()) t.gathered = Array<float>(rows * steps_);
    t.panel = Array<float>(panel_floats(config.block_k));
    t.c = Array<float>(rows * kMaxTileVectors * kVector);
    t.rows.resize(static_cast<std::size_t>(rows));
  }
}

void GroupedGemmKernel::poison() {
  const auto fill = [](const Array<float>& array) {
    std::ranges::fill(array.span(), std::numeric_limits<float>::quiet_NaN());
  };
  fill(encoded_);
  fill(encoded_scales_);
  for (const Thread& t : threads_) {
    for (const Array<float>* array : {&t.wide, &t.packed, &t.packed_scales, &t.packed_sums,
                                      &t.gathered, &t.sums, &t.panel, &t.c}) {
      fill(*array);
    }
  }
}

// Batches may hold more rows than there are pairs.
void GroupedGemmKernel::hold_rows() {
  const std::int64_t rows = std::ssize(rows_.sources());
  if (rows * steps_ > std::ssize(encoded_.span())) {
    encoded_ = Array<float>(rows * steps_);
    encoded_scales_ = Array<float>(rows * groups_);
  }
}

void GroupedGemmKernel::widen(const Tensor& a, std::int64_t row, float* out) const {
  const std::int64_t at = row * elements_;
  switch (a.spec.type) {
    case TensorType::e4m3fn:
    case TensorType::e4m3fnuz:
      return kernels_.decode_fp8(
          a.spec.type == TensorType::e4m3fn ? Fp8Type::e4m3fn : Fp8Type::e4m3fnuz,
          a.as<std::uint8_t>().data() + at, elements_, out);
    case TensorType::int8: {
      const std::int8_t* const codes = a.as<std::int8_t>().data() + at;
      for (std::int64_t i = 0; i < elements_; ++i) out[i] = codes[i];
      return;
    }
    default:
      return kernels_.widen(type_, a.as<std::uint16_t>().data() + at, elements_, out);
  }
}

float GroupedGemmKernel::scale_of(const Tensor& scales, std::int64_t row,
                                  std::int64_t group) const {
  const std::int64_t across = scales.spec.shape.size() > 1 ? scales.spec.shape.back() : 0;
  const auto at = static_cast<std::size_t>(row * across +
                                           std::min(group, std::max<std::int64_t>(across - 1, 0)));
  return scales.spec.type == TensorType::e8m0 ? e8m0_to_float(scales.as<std::uint8_t>()[at])
                                              : scales.as<float>()[at];
}

void GroupedGemmKernel::encode(const Tensor& a, const Tensor* scales) {
  // Values are what the codec holds already: no scale is applied.
  const EncodeArgs shared = {.elements = elements_,
                             .padded = layout_.elements(),
                             .codec = recipe_.activation,
                             .unit = unit_,
                             .scaling = {.maximum = recipe_.scaling.maximum}};
  pool_.parallel_for(
      std::ssize(rows_.sources()),
      [&](std::int64_t i, int t) {
        const std::int32_t source = rows_.sources()[static_cast<std::size_t>(i)];
        if (source < 0) return;
        float* const wide = threads_[static_cast<std::size_t>(t)].wide.data();
        widen(a, source, wide);
        EncodeArgs args = shared;
        args.in = wide;
        args.out = encoded_.data() + i * steps_;
        kernels_.encode(args);
        for (std::int64_t g = 0; g < groups_; ++g) {
          encoded_scales_[i * groups_ + g] = scale_of(*scales, source, g);
        }
      },
      Schedule::contiguous);
}

void GroupedGemmKernel::make_tasks() {
  tasks_.clear();
  const std::int64_t step = config_.block_n / layout_.tile_columns();
  for (std::int64_t e = 0; e < experts_; ++e) {
    const std::int64_t end = rows_.begin(e + 1);
    for (std::int64_t row = rows_.begin(e); row < end; row += config_.block_m) {
      const std::int64_t rows = std::min(config_.block_m, end - row);
      for (std::int64_t tile = 0; tile < layout_.tiles(); tile += step) {
        tasks_.push_back({e, row, rows, tile, std::min(tile + step, layout_.tiles())});
      }
    }
  }
}

void GroupedGemmKernel::pack(const Task& task, const std::byte* expert, Thread& thread) const {
  if (thread.holds_row == task.row) return;  // rows belong to one expert
  thread.holds_row = task.row;
  const std::int64_t groups = layout_.groups();
  for (std::int64_t r = 0; r < task.rows; ++r) {
    const std::int64_t from = rows_.row(task.row + r).encoded;
    const float* row = encoded_.data() + from * steps_;
    if (layout_.reordered()) {
      const std::span<const std::int32_t> order = layout_.packed_from(expert);
      float* const reordered = thread.gathered.data() + r * steps_;
      kernels_.gather_steps(unit_, row, order.data(), std::ssize(order), reordered);
      row = reordered;
    }
    thread.rows[static_cast<std::size_t>(r)] = row;
    for (std::int64_t g = 0; g < groups_; ++g) {
      thread.packed_scales[g * task.rows + r] = encoded_scales_[from * groups_ + g];
    }
    if (!recipe_.zero_points) continue;
    kernels_.sum_groups(unit_, row, contracted(expert),
                        layout_.group() > 0 ? layout_.group() : layout_.elements(),
                        thread.sums.data());
    for (std::int64_t g = 0; g < groups; ++g) {
      thread.packed_sums[g * task.rows + r] = thread.sums[g];
    }
  }
  thread.a = thread.rows[0];  // a row alone is its own packed form
  if (task.rows == 1) return;
  kernels_.pack_rows(thread.rows.data(), task.rows, contracted(expert) / elements_per_step(unit_),
                     thread.packed.data());
  thread.a = thread.packed.data();
}

void GroupedGemmKernel::multiply(const Task& task, const std::byte* expert, Thread& thread,
                                 std::uint16_t* output) const {
  for (std::int64_t tile = task.tile; tile < task.tile_end; ++tile) {
    const int vectors = layout_.tile_vectors(tile);
    kernels_.gemm(recipe_.weight,
                  {.a = thread.a,
                   .a_scale = groups_ > 0 ? thread.packed_scales.data() : nullptr,
                   .rows = task.rows,
                   .unit = unit_,
                   .w = expert + layout_.tile_offset(tile),
                   .w_rare = layout_.rare_marks(expert, tile),
                   .scale_type = recipe_.scale_type,
                   .w_scale = recipe_.scaled() ? expert + layout_.scale_offset(tile) : nullptr,
                   .w_zero = recipe_.zero_points ? expert + layout_.zero_offset(tile) : nullptr,
                   .a_sum = recipe_.zero_points ? thread.packed_sums.data() : nullptr,
                   .vectors = vectors,
                   .scale_lanes = layout_.scale_lanes(),
                   .elements = contracted(expert),
                   .group = layout_.group(),
                   .block = config_.block_k,
                   .prefetch = config_.prefetch_distance,
                   .panel = thread.panel.data(),
                   .c = thread.c.data()});
    const std::int64_t begin = tile * layout_.tile_columns();
    const std::int64_t count = std::min<std::int64_t>(layout_.tile_columns(), columns_ - begin);
    for (std::int64_t r = 0; r < task.rows; ++r) {
      const std::int64_t row = rows_.row(task.row + r).output;
      kernels_.narrow(type_, thread.c.data() + r * vectors * kVector, count,
                      output + row * columns_ + begin);
    }
  }
}

void GroupedGemmKernel::run(int weight_set, std::span<const Tensor> inputs,
                            std::span<Tensor> outputs) {
  rows_.place(inputs);
  hold_rows();
  encode(inputs[0], find_tensor(inputs, "a_scale"));
  make_tasks();
  for (Thread& thread : threads_) thread.holds_row = -1;
  std::uint16_t* const output = outputs[0].as<std::uint16_t>().data();
  pool_.parallel_for(std::ssize(tasks_), [&](std::int64_t i, int t) {
    const Task& task = tasks_[static_cast<std::size_t>(i)];
    Thread& thread = threads_[static_cast<std::size_t>(t)];
    const std::byte* const expert = weights_.expert(weight_set, task.expert);
    pack(task, expert, thread);
    multiply(task, expert, thread, output);
  });
}

class GroupedGemmOp final : public CpuOp {
 public:
  std::string_view name() const override { return "grouped_gemm"; }

  std::optional<Refusal> refuses(const OpProblem& p) const override {
    if (find_recipe(*p.scheme, p.layer)) return std::nullopt;
    return Refusal{RefusalReason::scheme,
                   "the cpu backend has no grouped GEMM for scheme " + p.scheme->name()};
  }
  Config default_config(const OpProblem& p) const override {
    return to_config(heuristic_config(for_tasks(p), recipe_of(p), p.tokens, machine()));
  }
  std::optional<Refusal> refuses_config(const OpProblem& p, const Config& config) const override {
    const auto parsed = parse_config(config, for_tasks(p), recipe_of(p), p.tokens, machine());
    return parsed ? std::nullopt : std::optional(parsed.error());
  }
  std::optional<DotUnit> dot_unit(const OpProblem& p, const KernelTable& kernels) const override {
    return kernels.dot_unit(recipe_of(p).activation);
  }
  std::unique_ptr<const OpWeights> load(const OpProblem& p, std::span<const Tensor> weights,
                                        int sets, const OpContext& context) const override {
    return std::make_unique<PackedExperts>(p, weights, sets, context);
  }
  std::unique_ptr<OpKernel> make(const OpProblem& p, const Config& config, const OpContext& context,
                                 const OpWeights* weights) const override {
    const auto parsed = parse_config(config, for_tasks(p), recipe_of(p), p.tokens, machine());
    return std::make_unique<GroupedGemmKernel>(p, *parsed, context,
                                               dynamic_cast<const PackedExperts&>(*weights));
  }
};

}  // namespace

const CpuOp& grouped_gemm_op() {
  static const GroupedGemmOp op;
  return op;
}

}  // namespace moegauge::cpu
