#include "kernels/hip/workspace.h"

#include <algorithm>

namespace moegauge::hip {
namespace {

int int_of(std::int64_t value) { return static_cast<int>(value); }
std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

int pitch_of(std::int64_t columns, const LayerFormat& format) {
  return int_of(divided_up(columns * format.element_bytes, moe::kStepBytes) * moe::kStepBytes);
}

void describe_activation(const Activation& activation, moe::LayerArgs& args) {
  switch (activation.kind) {
    case ActivationKind::silu_and_mul:
      args.activation = moe::Activate::silu;
      break;
    case ActivationKind::gelu_and_mul:
      args.activation = moe::Activate::gelu;
      break;
    case ActivationKind::gelu_tanh_and_mul:
      args.activation = moe::Activate::gelu_tanh;
      break;
    case ActivationKind::swiglu_clamped:
      args.activation = moe::Activate::swiglu_clamped;
      break;
  }
  args.alpha = static_cast<float>(activation.alpha);
  args.beta = static_cast<float>(activation.beta);
  args.limit = static_cast<float>(activation.limit);
}

void describe_layer(const LayerConstants& constants, const Tile& tile, std::int64_t tokens,
                    moe::LayerArgs& args) {
  const Layer& layer = constants.layer;
  const LayerFormat& format = constants.format;
  args.tokens = int_of(tokens);
  args.hidden = int_of(layer.hidden_size);
  args.inter = int_of(layer.intermediate_size);
  args.experts = int_of(layer.local_experts());
  args.top_k = int_of(layer.top_k);
  args.pairs = int_of(tokens * layer.top_k);
  args.x_pitch = pitch_of(layer.hidden_size, format);
  args.h_pitch = pitch_of(layer.intermediate_size, format);
  args.w13_tiles = int_of(packed_shape(layer, format, Role::w13).tiles);
  args.w2_tiles = int_of(packed_shape(layer, format, Role::w2).tiles);
  args.tile_tokens = tile.tokens;
  args.group = tile.group;
  args.on_input = layer.router_weight_on_input ? 1 : 0;
  args.fp16 = layer.dtype == Dtype::fp16 ? 1 : 0;
  args.maximum = format.maximum;
  args.amax_floor = format.rule.amax_floor;
  args.scale_floor = format.rule.scale_floor;
  args.fixed_x_scale = constants.fixed_x_scale;
  args.fixed_h_scale = constants.fixed_h_scale;
  args.expert_map = constants.expert_map;
  describe_activation(layer.activation, args);
}

}  // namespace

std::int64_t tile_capacity(const Layer& layer, std::int64_t tokens, std::int64_t tile_tokens) {
  const std::int64_t pairs = tokens * layer.top_k;
  return pairs / tile_tokens + std::min(layer.local_experts(), pairs);
}

template <typename T>
T* Workspace::take(std::int64_t count) {
  buffers_.emplace_back(processor_, static_cast<std::size_t>(count) * sizeof(T));
  return buffers_.back().as<T>();
}

Workspace::Workspace(const Processor& processor, const LayerConstants& constants, const Tile& tile,
                     std::int64_t tokens)
    : processor_(processor) {
  describe_layer(constants, tile, tokens, args_);
  if (tokens == 0) return;
  const LayerFormat& format = constants.format;
  const std::int64_t pairs = args_.pairs, experts = args_.experts;
  const std::int64_t tiles = tile_capacity(constants.layer, tokens, tile.tokens);
  args_.chunk_counts = take<int>(divided_up(tokens, moe::kChunkTokens) * experts);
  args_.first_row = take<int>(experts + 1);
  args_.tile_expert = take<int>(tiles);
  args_.tile_row = take<int>(tiles);
  args_.tile_count = take<int>(1);
  args_.row_token = take<int>(pairs);
  args_.row_weight = take<float>(pairs);
  args_.pair_row = take<int>(pairs);
  args_.amax = take<moe::u32>(2);
  // 16-bit rows that are whole steps are read where they are.
  if (format.activations != ActivationUnit::none || args_.x_pitch != 2 * args_.hidden)
    args_.x_rows = take<moe::u8>(tokens * args_.x_pitch);
  args_.h_rows = take<moe::u8>(pairs * args_.h_pitch);
  args_.pair_out = take<moe::u16>(pairs * args_.hidden);
  if (format.activations == ActivationUnit::none) return;
  const bool groups = format.activations == ActivationUnit::group;
  args_.x_scale = take<float>(tokens * (groups ? args_.x_pitch / moe::kStepBytes : 1));
  args_.h_scale = take<float>(pairs * (groups ? args_.h_pitch / moe::kStepBytes : 1));
  args_.h_wide = take<moe::u8>(pairs * args_.h_pitch * (groups ? 4 : 2));
}

void Workspace::poison() const {
  for (const Buffer& buffer : buffers_) buffer.fill(0xff);
}

moe::LayerArgs Workspace::bind(const Slot& slot, const WeightSet& weights) const {
  moe::LayerArgs args = args_;
  args.x = slot.x.as<const moe::u16>();
  args.topk_ids = slot.topk_ids.as<const int>();
  args.topk_weights = slot.topk_weights.as<const float>();
  args.y = slot.y.as<moe::u16>();
  args.w13 = weights.w13.as<const moe::u8>();
  args.w2 = weights.w2.as<const moe::u8>();
  args.w13_scale = weights.w13_scale.as<const float>();
  args.w2_scale = weights.w2_scale.as<const float>();
  args.w13_bias = weights.w13_bias.as<const float>();
  args.w2_bias = weights.w2_bias.as<const float>();
  if (args.x_rows == nullptr) args.x_rows = slot.x.as<moe::u8>();
  return args;
}

}  // namespace moegauge::hip
