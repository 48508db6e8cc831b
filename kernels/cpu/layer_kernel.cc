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

}  // namespace

struct LayerKernel::Thread {
  Array<float> packed;         // activations of a task
  Array<float> packed_scales;  // [groups][rows]
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
};

LayerKernel::Operand LayerKernel::make_operand(std::int64_t rows,
                                               const MatrixLayout& layout) const {
  Operand o;
  o.steps = steps_of(layout, unit_);
  o.groups = layout.groups();
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
      h_columns_(std::min(config.block_n,
                          std::lcm<std::int64_t>(128, std::max<std::int64_t>(recipe.group, 1)))),
      x_(make_operand(tokens, weights.w13())),
      h_(make_operand(tokens * layer.top_k, weights.w2())),
      pairs_(tokens * layer.top_k * layer.hidden_size) {
  const std::int64_t rows =
      std::min(config.block_m, std::max<std::int64_t>(tokens * layer.top_k, 1));
  const auto row_count = static_cast<std::size_t>(rows);
  for (int t = 0; t < pool.threads(); ++t) {
    auto thread = std::make_unique<Thread>();
    thread->packed = Array<float>(rows * std::max(x_.steps, h_.steps));
    thread->packed_scales = Array<float>(rows * std::max(x_.groups, h_.groups));
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
  fill(pairs_);
  for (const auto& thread : threads_) {
    for (const Array<float>* array : {&thread->packed, &thread->packed_scales, &thread->panel,
                                      &thread->c, &thread->h, &thread->wide}) {
      fill(*array);
    }
  }
}

template <typename Fn>
void LayerKernel::over_tokens(const Fn& fn) {
  if (tokens_ * layer_.hidden_size <= kAlone) {
    for (std::int64_t m = 0; m < tokens_; ++m) fn(m, 0);
  } else {
    pool_.parallel_for(tokens_, fn, Schedule::contiguous);
  }
}

void LayerKernel::encode_row(const LayerInputs& inputs, std::int64_t token, float* wide) const {
  const auto k = layer_.hidden_size;
  kernels_.widen(narrow_type(layer_.dtype), inputs.x.data() + token * k, k, wide);
  kernels_.encode({.in = wide,
                   .elements = k,
                   .padded = weights_.w13().elements(),
                   .codec = recipe_.activation,
                   .unit = unit_,
                   .group = recipe_.group,
                   .amax_floor = recipe_.amax_floor,
                   .out = x_.row(token),
                   .scales = x_.row_scales(token)});
}

void LayerKernel::encode_x(const LayerInputs& inputs) {
  const std::int64_t top_k = layer_.top_k;
  over_tokens([&](std::int64_t m, int t) {
    const std::int32_t* position = alignment_.position.data() + m * top_k;
    const bool served = std::any_of(position, position + top_k, [](auto p) { return p >= 0; });
    if (served) encode_row(inputs, m, threads_[static_cast<std::size_t>(t)]->wide.data());
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

void LayerKernel::pack_activations(const Operand& operand, bool gather, const Task& task,
                                   Thread& thread) const {
  if (thread.holds == &operand && thread.holds_row == task.row) return;
  thread.holds = &operand;
  thread.holds_row = task.row;
  const auto source = [&](std::int64_t r) {
    const std::int64_t position = task.row + r;
    return gather ? alignment_.pairs[static_cast<std::size_t>(position)] / layer_.top_k : position;
  };
  if (task.rows == 1) {  // a row is its own packed form
    thread.a = operand.row(source(0));
    thread.a_scale = operand.row_scales(source(0));
    return;
  }
  for (std::int64_t r = 0; r < task.rows; ++r) {
    const std::int64_t from = source(r);
    thread.rows[static_cast<std::size_t>(r)] = operand.row(from);
    for (std::int64_t g = 0; g < operand.groups; ++g) {
      thread.packed_scales[g * task.rows + r] = operand.row_scales(from)[g];
    }
  }
  kernels_.pack_rows(thread.rows.data(), task.rows, operand.steps, thread.packed.data());
  thread.a = thread.packed.data();
  thread.a_scale = thread.packed_scales.data();
}

GemmArgs LayerKernel::gemm_args(const MatrixLayout& layout, const std::byte* expert,
                                std::int64_t tile, const Task& task, const Thread& thread) const {
  const bool scaled = layout.groups() > 0;
  return {.a = thread.a,
          .a_scale = scaled ? thread.a_scale : nullptr,
          .rows = task.rows,
          .unit = unit_,
          .w = expert + layout.tile_offset(tile),
          .w_scale =
              scaled ? reinterpret_cast<const float*>(expert + layout.scale_offset(tile)) : nullptr,
          .vectors = layout.tile_vectors(tile),
          .scale_lanes = layout.scale_lanes(),
          .elements = layout.elements(),
          .group = recipe_.group,
          .block = config_.block_k,
          .prefetch = config_.prefetch_distance,
          .panel = thread.panel.data(),
          .c = thread.c.data()};
}

void LayerKernel::gate_up(int weight_set, const LayerInputs& inputs, const Task& task,
                          Thread& thread) {
  const MatrixLayout& layout = weights_.w13();
  const std::byte* expert = weights_.expert_w13(weight_set, task.expert);
  pack_activations(x_, true, task, thread);
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
    encode_columns(part, thread);
  }
}

void LayerKernel::activate_columns(const std::byte* expert, const Task& part,
                                   const float* row_weight, Thread& thread) const {
  const MatrixLayout& layout = weights_.w13();
  const Activation& activation = layer_.activation;
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
                       .out = thread.h.data() + (tile - part.tile) * layout.tile_columns(),
                       .ld = h_columns_});
  }
}

void LayerKernel::encode_columns(const Task& part, Thread& thread) const {
  const MatrixLayout& layout = weights_.w13();
  const std::int64_t begin = part.tile * layout.tile_columns();
  const std::int64_t end = std::min(part.tile_end * layout.tile_columns(), layout.columns());
  const bool last = part.tile_end == layout.tiles();
  for (std::int64_t r = 0; r < part.rows; ++r) {
    const std::int64_t row = part.row + r;
    kernels_.encode(
        {.in = thread.h.data() + r * h_columns_,
         .elements = end - begin,
         .padded = (last ? weights_.w2().elements() : end) - begin,
         .codec = recipe_.activation,
         .unit = unit_,
         .group = recipe_.group,
         .amax_floor = recipe_.amax_floor,
         .out = h_.row(row) + begin / elements_per_step(unit_),
         .scales = recipe_.group > 0 ? h_.row_scales(row) + begin / recipe_.group : nullptr});
  }
}

void LayerKernel::down(int weight_set, const LayerInputs& inputs, const Task& task,
                       Thread& thread) {
  const MatrixLayout& layout = weights_.w2();
  const std::byte* expert = weights_.expert_w2(weight_set, task.expert);
  pack_activations(h_, false, task, thread);
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
  over_tokens([&](std::int64_t m, int t) {
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

void LayerKernel::run(int weight_set, const LayerInputs& inputs, std::span<std::uint16_t> y) {
  align(layer_, inputs.topk_ids, alignment_);
  encode_x(inputs);
  for (auto& thread : threads_) thread->holds = nullptr;
  const auto over_tasks = [&](const std::vector<Task>& tasks, auto member) {
    pool_.parallel_for(static_cast<std::int64_t>(tasks.size()), [&](std::int64_t i, int t) {
      (this->*member)(weight_set, inputs, tasks[static_cast<std::size_t>(i)],
                      *threads_[static_cast<std::size_t>(t)]);
    });
  };
  over_tasks(make_tasks(weights_.w13()), &LayerKernel::gate_up);
  over_tasks(make_tasks(weights_.w2()), &LayerKernel::down);
  reduce(y);
}

}  // namespace moegauge::cpu
