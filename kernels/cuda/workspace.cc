#include "kernels/cuda/workspace.h"

#include <algorithm>
#include <cstring>

#include "kernels/cuda/tile_rows.h"
#include "kernels/nvidia/runtime/prepare.h"

namespace moegauge::cuda {
namespace {

constexpr std::int64_t widest_tile = 256;  // a tile may reach this far past the last row

template <typename T>
T* as(CUdeviceptr pointer) {
  return reinterpret_cast<T*>(pointer);  // NOLINT(performance-no-int-to-ptr): a device address
}

// Row-major [rows, columns], fetched in boxes of box_rows by 128 bytes with the 128-byte swizzle
// that the matrix instructions read.
moe::TensorMap tensor_map(CUdeviceptr base, int element_bytes, std::int64_t rows,
                          std::int64_t columns, unsigned box_rows) {
  CUtensorMap map;
  const auto bytes = static_cast<cuuint64_t>(element_bytes);
  const cuuint64_t dims[2] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {dims[0] * bytes};
  const cuuint32_t box[2] = {static_cast<cuuint32_t>(128 / bytes), box_rows};
  const cuuint32_t steps[2] = {1, 1};
  check(require_driver().tensor_map_encode_tiled(
            &map,
            element_bytes == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
            2, as<void>(base), dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
            CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        "cuTensorMapEncodeTiled");
  moe::TensorMap result;
  static_assert(sizeof result == sizeof map);
  std::memcpy(&result, &map, sizeof map);
  return result;
}

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

}  // namespace

template <typename T>
void Workspace::take(T*& pointer, std::size_t bytes) {
  scratch_.emplace_back(std::max<std::size_t>(bytes, 16));
  pointer = as<T>(scratch_.back().get());
}

Workspace::Workspace(const Layer& layer, const CudaScheme& scheme, const TileConfig& config,
                     std::int64_t tokens, const Stream& stream)
    : layer_(layer),
      element_bytes_(scheme.element_bytes),
      token_box_(config.swap_ab ? static_cast<unsigned>(config.token_tile) : 64u) {
  const std::int64_t pairs = tokens * layer.top_k, experts = layer.local_experts();
  const std::int64_t rows = (pairs + widest_tile + 63) / 64 * 64;
  const std::int64_t units = scheme.microscaling() ? 4 : 1;  // scales for 128 columns
  const std::int64_t k_groups = (layer.hidden_size + 127) / 128 * units;
  const std::int64_t inter = padded_inter(layer), n_groups = (inter + 127) / 128 * units;
  take(args_.x_rows, size(rows * layer.hidden_size * element_bytes_));
  take(args_.x_scale, size(rows * k_groups * 4));
  take(args_.h_rows, size(rows * inter * element_bytes_));
  take(args_.h_scale, size(rows * n_groups * 4));
  take(args_.h_wide, scheme.wide_activations ? size(rows * inter * 2) : 0);
  take(args_.pair_out, layer.top_k > 1 ? size(rows * layer.hidden_size * 2) : 0);
  take(args_.row_weight, size(rows * 4));
  take(args_.row_token, size(rows * 4));
  take(args_.pair_row, size(rows * 4));
  take(args_.expert_rows, size(experts * 4));
  take(args_.group_rows, size((tokens / moe::kGroupTokens + 1) * experts * 4));
  args_.tile_capacity =
      static_cast<int>(pairs / config.token_tile + std::min<std::int64_t>(experts, pairs));
  args_.counter_words = args_.tile_capacity * 3 + (config.split_k ? 2 * moe::kMaxSplitUnits : 0);
  if (layer.top_k > 1 && config.swap_ab && pairs <= moe::kInsidePairs) {
    args_.combined = args_.counter_words;
    args_.counter_words += static_cast<int>(ceil_div(layer.hidden_size, tile_rows));
  }
  if (scheme.tensor_scale == TensorScale::from_amax) {
    args_.tensor = args_.counter_words;
    args_.counter_words += 4;
  }
  take(args_.partial, config.split_k ? size_t{2} * moe::kMaxSplitUnits * 256 * 64 * 4 : 0);
  args_.act_alpha = static_cast<float>(layer.activation.alpha);
  args_.act_beta = static_cast<float>(layer.activation.beta);
  args_.act_limit = static_cast<float>(layer.activation.limit);
  set_prepare_sizes(args_, layer, tokens);
  args_.row_pitch = static_cast<int>(rows);
  // 12 MB over the device, about prepare's time.
  args_.early_stages =
      scheme.integers
          ? static_cast<int>(std::size_t{3} * moe::kChunkBytes / chunk_bytes(*scheme.integers))
          : 3;
  const bool alone = is_alone(layer, scheme, config, tokens);
  zeroed_ = Buffer((4 + (alone ? size(2 * args_.counter_words) : 0)) * sizeof(moe::u32));
  zeroed_.fill(stream, 0);
  args_.drawn = as<moe::u32>(zeroed_.get());
  args_.tensor_amax = args_.drawn + 1;
  args_.turn = args_.drawn + 2;
  if (alone)
    args_.counters = args_.turn + 2;
  else
    take(args_.counters, size(args_.counter_words) * 4);
  if (!layer.expert_map.empty()) {
    expert_map_ = Buffer(layer.expert_map.size() * sizeof(std::int32_t));
    expert_map_.upload(stream, std::as_bytes(std::span(layer_.expert_map)));
    args_.expert_map = as<const int>(expert_map_.get());
  }
  stream.synchronize();
}

void Workspace::poison(const Stream& stream) const {
  for (const Buffer& buffer : scratch_) buffer.fill(stream, 0xff);
}

moe::LayerArgs Workspace::bind(const Slot& slot, const WeightSet& weights) const {
  moe::LayerArgs args = args_;
  const std::int64_t k = layer_.hidden_size, n = padded_inter(layer_);
  const auto address = [](const auto* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); };
  args.w13_chunks = as<const moe::u8>(weights.w13.get());
  args.w2_chunks = as<const moe::u8>(weights.w2.get());
  args.x_order = as<const moe::u16>(weights.x_order.get());
  args.x_rows_map = tensor_map(address(args.x_rows), element_bytes_, args.row_pitch, k, token_box_);
  args.h_rows_map = tensor_map(address(args.h_rows), element_bytes_, args.row_pitch, n, token_box_);
  args.x = as<const moe::u16>(slot.x.get());
  args.topk_ids = as<const int>(slot.topk_ids.get());
  args.topk_weights = as<const float>(slot.topk_weights.get());
  args.w13_scale = as<const float>(weights.w13_scale.get());
  args.w2_scale = as<const float>(weights.w2_scale.get());
  args.tensor_scale = as<const float>(weights.tensor_scale.get());
  args.w13_bias = as<const float>(weights.w13_bias.get());
  args.w2_bias = as<const float>(weights.w2_bias.get());
  args.y = as<moe::u16>(slot.y.get());
  return args;
}

}  // namespace moegauge::cuda
