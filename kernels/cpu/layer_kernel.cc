#include "kernels/cpu/layer_kernel.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

namespace moegauge::cpu {
namespace {

// Work below this many elements is not worth waking other threads for.
constexpr std::int64_t kAlone = 16384;

std::int64_t steps_of(const MatrixLayout& layout, DotUnit unit) {
  return layout.elements() / elements_per_step(unit);
}

// Contracted elements of one expert, padded.
std::int64_t contracted(const MatrixLayout& layout, const std::byte* expert) {
  return layout.reordered() ? std::ssize(layout.packed_from(expert)) : layout.elements();
}

// Of a row of h, with room for the last vector's padding.
std::int64_t wide_columns(const Layer& layer) {
  return (layer.intermediate_size + kVector - 1) / kVector * kVector;
}

}  // namespace

NarrowType narrow_type(Dtype dtype) {
  return dtype == Dtype::bf16 ? NarrowType::bf16 : NarrowType::fp16;
}

ActivationFunction activation_function(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::silu_and_mul:
      return ActivationFunction::silu;
    case ActivationKind::gelu_and_mul:
      return ActivationFunction::gelu_erf;
    case ActivationKind::gelu_tanh_and_mul:
      return ActivationFunction::gelu_tanh;
    case ActivationKind::swiglu_clamped:
      return ActivationFunction::swiglu_clamped;
  }
  return ActivationFunction::silu;
}

struct LayerKernel::Thread {
  Array<float> packed;         // activations of a task
  Array<float> packed_scales;  // [groups][rows]
  Array<float> packed_sums;    // [groups][rows], where weights have zero points
  Array<float> gathered;       // [rows][steps], where an expert has an order of columns of its own
  Array<float> sums;           // [groups] of one row
  Array<float> panel;
  Array<float> c;     // [block_m][64]
  Array<float> h;     // [block_m][block_n]
  Array<float> wide;  // one row of x
  std::vector<const float*> rows;
  std::vector<float*> out_rows;
  std::vector<float> weights;
  std::vector<const float*> reduced;  // one token's pairs
  // What `packed` holds, and where gemm is to read it.
  const Operand* holds = nullptr;
  std::int64_t holds_row = -1;
  const float* a = nullptr;
  const float* a_scale = nullptr;
  const float* a_sum = nullptr;
};

LayerKernel::Operand LayerKernel::make_operand(std::int64_t rows,
                                               const MatrixLayout& layout) const {
  Operand o;
  o.steps = steps_of(layout, unit_);
  o.groups = recipe_.activation_scale == ActivationScale::none ? 0 : layout.groups();
  o.rows = Array<float>(rows * o.steps);
  o.scales = Array<float>(rows * o.groups);
  return o;
}

LayerKernel::LayerKernel(const Layer& layer, const Recipe& recipe, const KernelTable& kernels,
                         const PackedWeights& weights, const CpuConfig& config, std::int64_t tokens,
                         ThreadPool& pool)
    : layer_(layer),
      recipe_(recipe),
      kernels_(kernels),
      weights_(weights),
      config_(config),
      tokens_(tokens),
      unit_(kernels.dot_unit(recipe.activation)),
      pool_(pool),
      h_by_rows_(recipe.activation_scale == ActivationScale::row ||
                 recipe.activation_scale == ActivationScale::tensor),
      h_columns_(std::min(config.block_n,
                          std::lcm<std::int64_t>(128, std::max<std::int64_t>(recipe.group, 1)))),
      x_(make_operand(tokens, weights.w13())),
      h_(make_operand(tokens * layer.top_k, weights.w2())),
      wide_h_(h_by_rows_ ? tokens * layer.top_k * wide_columns(layer) : 0),
      row_amax_(recipe.activation_scale == ActivationScale::tensor ? tokens * layer.top_k : 0),
      pairs_(tokens * layer.top_k * layer.hidden_size) {
  const std::int64_t rows =
      std::min(config.block_m, std::max<std::int64_t>(tokens * layer.top_k, 1));
  const auto row_count = static_cast<std::size_t>(rows);
  for (int t = 0; t < pool.threads(); ++t) {
    auto thread = std::make_unique<Thread>();
    thread->packed = Array<float>(rows * std::max(x_.steps, h_.steps));
    thread->packed_scales = Array<float>(rows * std::max(x_.groups, h_.groups));
    if (recipe.zero_points) {
      const std::int64_t groups = std::max(weights.w13().groups(), weights.w2().groups());
      thread->packed_sums = Array<float>(rows * groups);
      thread->sums = Array<float>(groups);
    }
    if (recipe.group_index) thread->gathered = Array<float>(rows * std::max(x_.steps, h_.steps));
    thread->panel = Array<float>(panel_floats(config.block_k));
    thread->c = Array<float>(rows * kMaxTileVectors * kVector);
    thread->h = Array<float>(rows * h_columns_);
    thread->wide = Array<float>(layer.hidden_size);
    thread->rows.resize(row_count);
    thread->out_rows.resize(row_count);
    thread->weights.resize(row_count);
    thread->reduced.reserve(static_cast<std::size_t>(layer.top_k));
    threads_.push_back(std::move(thread));
  }
}

LayerKernel::~LayerKernel() = default;

void LayerKernel::poison() {
  const auto fill = [](const Array<float>& array) {
    std::ranges::fill(array.span(), std::numeric_limits<float>::quiet_NaN());
  };
  for (const Operand* o : {&x_, &h_}) {
    fill(o->rows);
    fill(o->scales);
  }
  for (const Array<float>* array : {&wide_h_, &row_amax_, &pairs_}) fill(*array);
  for (const auto& thread : threads_) {
    for (const Array<float>* array :
         {&thread->packed, &thread->packed_scales, &thread->packed_sums, &thread->gathered,
          &thread->sums, &thread->panel, &thread->c, &thread->h, &thread->wide}) {
      fill(*array);
    }
  }
}

template <typename Fn>
void LayerKernel::over_rows(std::int64_t rows, std::int64_t columns, const Fn& fn) {
  if (rows * columns <= kAlone) {
    for (std::int64_t r = 0; r < rows; ++r) fn(r, 0);
  } else {
    pool_.parallel_for(rows, fn, Schedule::contiguous);
  }
}

EncodeArgs LayerKernel::encode_args(Role role) const {
  EncodeArgs args = {.codec = recipe_.activation, .unit = unit_, .scaling = recipe_.scaling};
  if (recipe_.activation_scale == ActivationScale::group) args.group = recipe_.group;
  if (recipe_.activation_scale == ActivationScale::fixed) {
    args.scaling.given = weights_.activation_scale(role);
  }
  return args;
}

template <typename Fn>
EncodeArgs LayerKernel::encode_args_of_tensor(std::int64_t rows, std::int64_t columns,
                                              const Fn& amax) {
  over_rows(rows, columns, [&](std::int64_t r, int t) { row_amax_[r] = amax(r, t); });
  const float most = *std::max_element(row_amax_.data(), row_amax_.data() + rows);
  EncodeArgs args = {.codec = recipe_.activation, .unit = unit_, .scaling = recipe_.scaling};
  args.scaling.given = kernels_.scale_of(recipe_.scaling, most);
  args.scaling.rule = ScalingRule::given;
  return args;
}

void LayerKernel::widen_row(const LayerInputs& inputs, std::int64_t token, float* wide) const {
  const auto k = layer_.hidden_size;
  kernels_.widen(narrow_type(layer_.dtype), inputs.x.data() + token * k, k, wide);
}

void LayerKernel::encode_x(const LayerInputs& inputs) {
  if (tokens_ == 0) return;
  const auto wide_row = [&](std::int64_t m, int t) {
    float* const wide = threads_[static_cast<std::size_t>(t)]->wide.data();
    widen_row(inputs, m, wide);
    return wide;
  };
  EncodeArgs shared = encode_args(Role::w13);
  if (recipe_.activation_scale == ActivationScale::tensor) {
    // Of all tokens, also those whose experts are elsewhere.
    shared = encode_args_of_tensor(tokens_, layer_.hidden_size, [&](std::int64_t m, int t) {
      return kernels_.finite_amax(wide_row(m, t), layer_.hidden_size);
    });
  }
  const std::int64_t top_k = layer_.top_k;
  over_rows(tokens_, layer_.hidden_size, [&](std::int64_t m, int t) {
    const std::int32_t* position = alignment_.position.data() + m * top_k;
    const bool served = std::any_of(position, position + top_k, [](auto p) { return p >= 0; });
    if (!served) return;
    EncodeArgs args = shared;
    args.in = wide_row(m, t);
    args.elements = layer_.hidden_size;
    args.padded = weights_.w13().elements();
    args.out = x_.row(m);
    args.scales = x_.row_scales(m);
    kernels_.encode(args);
  });
}

void LayerKernel::requantise() {
  const auto pairs = static_cast<std::int64_t>(alignment_.pairs.size());
  if (!h_by_rows_ || pairs == 0) return;
  const std::int64_t n = layer_.intermediate_size, ld = wide_columns(layer_);
  EncodeArgs shared = encode_args(Role::w2);
  if (recipe_.activation_scale == ActivationScale::tensor) {
    shared = encode_args_of_tensor(pairs, n, [&](std::int64_t p, int) {
      return kernels_.finite_amax(wide_h_.data() + p * ld, n);
    });
  }
  over_rows(pairs, n, [&](std::int64_t p, int) {
    EncodeArgs args = shared;
    args.in = wide_h_.data() + p * ld;
    args.elements = n;
    args.padded = weights_.w2().elements();
    args.out = h_.row(p);
    args.scales = h_.row_scales(p);
    kernels_.encode(args);
  });
}

const std::vector<LayerKernel::Task>& LayerKernel::make_tasks(const MatrixLayout& layout) {
  tasks_.clear();
  const std::int64_t step = config_.block_n / layout.tile_columns();
  for (std::int64_t e = 0; e < layer_.local_experts(); ++e) {
    const std::int64_t end = alignment_.begin[static_cast<std::size_t>(e) + 1];
    for (std::int64_t row = alignment_.begin[static_cast<std::size_t>(e)]; row < end;
         row += config_.block_m) {
      const std::int64_t rows = std::min(config_.block_m, end - row);
      for (std::int64_t tile = 0; tile < layout.tiles(); tile += step) {
        tasks_.push_back({e, row, rows, tile, std::min(tile + step, layout.tiles())});
      }
    }
  }
  return tasks_;
}

void LayerKernel::pack_activations(const Operand& operand, const MatrixLayout& layout,
                                   const std::byte* expert, bool gather, const Task& task,
                                   Thread& thread) const {
  if (thread.holds == &operand && thread.holds_row == task.row) return;
  thread.holds = &operand;
  thread.holds_row = task.row;
  const std::int64_t groups = layout.groups();
  for (std::int64_t r = 0; r < task.rows; ++r) {
    const std::int64_t position = task.row + r;
    const std::int64_t from =
        gather ? alignment_.pairs[static_cast<std::size_t>(position)] / layer_.top_k : position;
    const float* row = operand.row(from);
    if (layout.reordered()) {
      const std::span<const std::int32_t> order = layout.packed_from(expert);
      float* const reordered = thread.gathered.data() + r * operand.steps;
      kernels_.gather_steps(unit_, row, order.data(), std::ssize(order), reordered);
      row = reordered;
    }
    thread.rows[static_cast<std::size_t>(r)] = row;
    for (std::int64_t g = 0; g < operand.groups; ++g) {
      thread.packed_scales[g * task.rows + r] = operand.row_scales(from)[g];
    }
    if (!recipe_.zero_points) continue;
    kernels_.sum_groups(unit_, row, contracted(layout, expert),
                        layout.group() > 0 ? layout.group() : layout.elements(),
                        thread.sums.data());
    for (std::int64_t g = 0; g < groups; ++g)
      thread.packed_sums[g * task.rows + r] = thread.sums[g];
  }
  thread.a_scale = operand.groups > 0 ? thread.packed_scales.data() : nullptr;
  thread.a_sum = recipe_.zero_points ? thread.packed_sums.data() : nullptr;
  if (task.rows == 1) {  // a row is its own packed form
    thread.a = thread.rows[0];
    return;
  }
  kernels_.pack_rows(thread.rows.data(), task.rows,
                     contracted(layout, expert) / elements_per_step(unit_), thread.packed.data());
  thread.a = thread.packed.data();
}

GemmArgs LayerKernel::gemm_args(const MatrixLayout& layout, const std::byte* expert,
                                std::int64_t tile, const Task& task, const Thread& thread) const {
  return {.a = thread.a,
          .a_scale = thread.a_scale,
          .rows = task.rows,
          .unit = unit_,
          .w = expert + layout.tile_offset(tile),
          .w_rare = layout.rare_marks(expert, tile),
          .scale_type = recipe_.scale_type,
          .w_scale = recipe_.scaled() ? expert + layout.scale_offset(tile) : nullptr,
          .w_zero = recipe_.zero_points ? expert + layout.zero_offset(tile) : nullptr,
          .a_sum = thread.a_sum,
          .vectors = layout.tile_vectors(tile),
          .scale_lanes = layout.scale_lanes(),
          .elements = contracted(layout, expert),
          .group = layout.group(),
          .block = config_.block_k,
          .prefetch = config_.prefetch_distance,
          .panel = thread.panel.data(),
          .c = thread.c.data()};
}

void LayerKernel::gate_up(int weight_set, const LayerInputs& inputs, const Task& task,
                          Thread& thread) {
  const MatrixLayout& layout = weights_.w13();
  const std::byte* expert = weights_.expert_w13(weight_set, task.expert);
  pack_activations(x_, layout, expert, true, task, thread);
  const float* row_weight = nullptr;
  if (layer_.router_weight_on_input) {
    for (std::int64_t r = 0; r < task.rows; ++r) {
      const auto pair = alignment_.pairs[static_cast<std::size_t>(task.row + r)];
      thread.weights[static_cast<std::size_t>(r)] =
          inputs.topk_weights[static_cast<std::size_t>(pair)];
    }
    row_weight = thread.weights.data();
  }
  // h is rounded as soon as whole scale groups of it are there.
  const std::int64_t step = h_columns_ / layout.tile_columns();
  for (std::int64_t tile = task.tile; tile < task.tile_end; tile += step) {
    Task part = task;
    part.tile = tile;
    part.tile_end = std::min(tile + step, task.tile_end);
    activate_columns(expert, part, row_weight, thread);
    if (!h_by_rows_) encode_columns(part, thread);
  }
}

void LayerKernel::activate_columns(const std::byte* expert, const Task& part,
                                   const float* row_weight, Thread& thread) const {
  const MatrixLayout& layout = weights_.w13();
  const Activation& activation = layer_.activation;
  const std::int64_t ld = h_by_rows_ ? wide_columns(layer_) : h_columns_;
  float* const h = h_by_rows_ ? wide_h_.data() + part.row * ld + part.tile * layout.tile_columns()
                              : thread.h.data();
  for (std::int64_t tile = part.tile; tile < part.tile_end; ++tile) {
    kernels_.gemm(recipe_.weight, gemm_args(layout, expert, tile, part, thread));
    const auto* bias = reinterpret_cast<const float*>(expert + layout.bias_offset(tile));
    kernels_.activate({.c = thread.c.data(),
                       .rows = part.rows,
                       .vectors = layout.tile_vectors(tile),
                       .bias = layer_.expert_bias ? bias : nullptr,
                       .row_weight = row_weight,
                       .function = activation_function(activation.kind),
                       .alpha = static_cast<float>(activation.alpha),
                       .beta = static_cast<float>(activation.beta),
                       .limit = static_cast<float>(activation.limit),
                       .out = h + (tile - part.tile) * layout.tile_columns(),
                       .ld = ld});
  }
}

void LayerKernel::encode_columns(const Task& part, Thread& thread) const {
  const MatrixLayout& layout = weights_.w13();
  const std::int64_t begin = part.tile * layout.tile_columns();
  const std::int64_t end = std::min(part.tile_end * layout.tile_columns(), layout.columns());
  const bool last = part.tile_end == layout.tiles();
  EncodeArgs args = encode_args(Role::w2);
  args.elements = end - begin;
  args.padded = (last ? weights_.w2().elements() : end) - begin;
  for (std::int64_t r = 0; r < part.rows; ++r) {
    const std::int64_t row = part.row + r;
    args.in = thread.h.data() + r * h_columns_;
    args.out = h_.row(row) + begin / elements_per_step(unit_);
    if (recipe_.activation_scale == ActivationScale::group) {
      args.scales = h_.row_scales(row) + begin / recipe_.group;
    } else if (recipe_.activation_scale == ActivationScale::fixed && begin == 0) {
      args.scales = h_.row_scales(row);  // one for the row, whichever task writes it
    }
    kernels_.encode(args);
  }
}

void LayerKernel::down(int weight_set, const LayerInputs& inputs, const Task& task,
                       Thread& thread) {
  const MatrixLayout& layout = weights_.w2();
  const std::byte* expert = weights_.expert_w2(weight_set, task.expert);
  pack_activations(h_, layout, expert, false, task, thread);
  const bool weighted = !layer_.router_weight_on_input;
  for (std::int64_t r = 0; r < task.rows; ++r) {
    const auto pair = alignment_.pairs[static_cast<std::size_t>(task.row + r)];
    thread.weights[static_cast<std::size_t>(r)] =
        inputs.topk_weights[static_cast<std::size_t>(pair)];
  }
  const bool biased = layer_.expert_bias && layer_.adds_w2_bias;
  for (std::int64_t tile = task.tile; tile < task.tile_end; ++tile) {
    kernels_.gemm(recipe_.weight, gemm_args(layout, expert, tile, task, thread));
    const std::int64_t begin = tile * layout.tile_columns();
    for (std::int64_t r = 0; r < task.rows; ++r) {
      thread.out_rows[static_cast<std::size_t>(r)] =
          pairs_.data() + (task.row + r) * layer_.hidden_size + begin;
    }
    const auto* bias = reinterpret_cast<const float*>(expert + layout.bias_offset(tile));
    kernels_.store_pairs(thread.c.data(), task.rows, layout.tile_vectors(tile) * kVector,
                         std::min<std::int64_t>(layout.tile_columns(), layout.columns() - begin),
                         biased ? bias : nullptr, weighted ? thread.weights.data() : nullptr,
                         thread.out_rows.data());
  }
}

void LayerKernel::reduce(std::span<std::uint16_t> y) {
  over_rows(tokens_, layer_.hidden_size, [&](std::int64_t m, int t) {
    Thread& thread = *threads_[static_cast<std::size_t>(t)];
    std::vector<const float*>& rows = thread.reduced;
    rows.clear();
    for (std::int64_t slot = 0; slot < layer_.top_k; ++slot) {
      const auto position = alignment_.position[static_cast<std::size_t>(m * layer_.top_k + slot)];
      if (position >= 0) rows.push_back(pairs_.data() + position * layer_.hidden_size);
    }
    kernels_.reduce(rows.data(), static_cast<std::int64_t>(rows.size()), layer_.hidden_size,
                    narrow_type(layer_.dtype), y.data() + m * layer_.hidden_size);
  });
}

template <typename Fn>
void LayerKernel::over_tasks(std::span<const Task> tasks, const Fn& fn) {
  const auto loop = [&](std::span<const Task> part) {
    pool_.parallel_for(
        std::ssize(part),
        [&](std::int64_t i, int t) {
          fn(part[static_cast<std::size_t>(i)], *threads_[static_cast<std::size_t>(t)]);
        },
        Schedule::streams);
  };
  if (config_.launch_per_expert == 0) return loop(tasks);
  for (std::int64_t e = 0; e < layer_.local_experts(); ++e) {
    const auto end =
        std::ranges::find_if(tasks, [e](const Task& task) { return task.expert != e; });
    const auto count = static_cast<std::size_t>(end - tasks.begin());
    if (count > 0) {
      loop(tasks.first(count));
    } else {
      pool_.parallel_for(
          pool_.threads(), [](std::int64_t) {}, Schedule::contiguous);
    }
    tasks = tasks.subspan(count);
  }
}

void LayerKernel::run(int weight_set, const LayerInputs& inputs, std::span<std::uint16_t> y) {
  align(layer_, inputs.topk_ids, alignment_);
  encode_x(inputs);
  for (auto& thread : threads_) thread->holds = nullptr;
  over_tasks(make_tasks(weights_.w13()),
             [&](const Task& task, Thread& thread) { gate_up(weight_set, inputs, task, thread); });
  requantise();
  over_tasks(make_tasks(weights_.w2()),
             [&](const Task& task, Thread& thread) { down(weight_set, inputs, task, thread); });
  reduce(y);
}

}  // namespace moegauge::cpu
