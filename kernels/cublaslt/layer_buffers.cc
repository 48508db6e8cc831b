#include "kernels/cublaslt/layer_buffers.h"

#include <algorithm>

#include "kernels/cublaslt/matmul.h"
#include "kernels/cublaslt/program.h"
#include "kernels/nvidia/runtime/prepare.h"

namespace moegauge::cublaslt {

using cuda::Buffer;

namespace {

// An expert's rows are rounded up to four where rows have scales of 128 columns: the last expert's
// may reach this far past the last row.
constexpr std::int64_t slack_rows = 64;

template <typename T>
T* as(CUdeviceptr pointer) {
  return reinterpret_cast<T*>(pointer);  // NOLINT(performance-no-int-to-ptr): a device address
}

Buffer buffer(std::int64_t bytes) { return Buffer(static_cast<std::size_t>(bytes)); }

std::int64_t units(std::int64_t columns, const LibraryScheme& scheme) {
  return scheme.scaling == Scaling::blocks ? (columns + 127) / 128 : 1;
}

}  // namespace

template <typename T>
void LayerBuffers::take(T*& pointer, std::int64_t bytes) {
  scratch_.push_back(buffer(std::max<std::int64_t>(bytes, 16)));
  pointer = as<T>(scratch_.back().get());
}

LayerBuffers::LayerBuffers(const Problem& problem, const LibraryScheme& scheme, std::int64_t tokens,
                           const cuda::Stream& stream)
    : layer_(problem.layer) {
  const std::int64_t pairs = tokens * layer_.top_k, experts = layer_.local_experts();
  const std::int64_t k = layer_.hidden_size, n = layer_.intermediate_size;
  const std::int64_t rows = (pairs + slack_rows + 63) / 64 * 64;
  const std::int64_t units1 = units(k, scheme), units2 = units(n, scheme);
  take(args_.expert_rows, experts * 4);
  take(args_.x_rows, rows * k * scheme.element_bytes);
  take(args_.x_scale, rows * units1 * 4);
  take(args_.row_weight, rows * 4);
  take(args_.row_token, rows * 4);
  take(args_.pair_row, rows * 4);
  take(args_.group_rows, (tokens / moe::kGroupTokens + 1) * experts * 4);
  char* gate_up = nullptr;
  take(gate_up, rows * 2 * n * (keeps_wide_sums(layer_) ? 4 : 2));
  library_.gate_up = gate_up;
  take(library_.h, rows * n * 2);
  take(library_.h_codes, scheme.element_bytes == 1 ? rows * n : 0);
  take(library_.h_scale, rows * units2 * 4);
  unsigned short* down = nullptr;
  take(down, rows * k * 2);
  library_.down = down;
  if (scheme.integer_bits != 0) dequantised_ = buffer(2 * n * k * 2);
  if (scheme.least_version() != 0) {
    regrouped_ = buffer((rows + 3 * std::min(experts, pairs)) * std::max(units1, units2) * 4 + 16);
  }
  workspace_ = buffer(workspace_bytes);
  amax_ = buffer(8);
  args_.tensor_amax = as<moe::u32>(amax_.get());
  library_.h_amax = args_.tensor_amax + 1;
  args_.act_alpha = static_cast<float>(layer_.activation.alpha);
  args_.act_beta = static_cast<float>(layer_.activation.beta);
  args_.act_limit = static_cast<float>(layer_.activation.limit);
  args_.row_pitch = static_cast<int>(rows);
  cuda::set_prepare_sizes(args_, layer_, tokens);
  if (!layer_.expert_map.empty()) {
    expert_map_ = Buffer(layer_.expert_map.size() * sizeof(std::int32_t));
    expert_map_.upload(stream, std::as_bytes(std::span(layer_.expert_map)));
    args_.expert_map = as<const int>(expert_map_.get());
  }
  stream.synchronize();
}

void LayerBuffers::poison(const cuda::Stream& stream) const {
  for (const Buffer& part : scratch_) part.fill(stream, 0xff);
  for (const Buffer* part : {&dequantised_, &regrouped_, &workspace_}) part->fill(stream, 0xff);
}

moe::LayerArgs LayerBuffers::bind(const cuda::Slot& slot, const WeightSet& weights) const {
  moe::LayerArgs args = args_;
  args.x = as<const moe::u16>(slot.x.get());
  args.topk_ids = as<const int>(slot.topk_ids.get());
  args.topk_weights = as<const float>(slot.topk_weights.get());
  args.tensor_scale = as<const float>(weights.tensor_scale.get());
  args.w13_bias = as<const float>(weights.w13.bias.get());
  args.w2_bias = as<const float>(weights.w2.bias.get());
  args.y = as<moe::u16>(slot.y.get());
  return args;
}

}  // namespace moegauge::cublaslt
