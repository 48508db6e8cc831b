// Workspace of a layer, and the arguments of one call.
#include "kernels/cuda/bench/workspace.h"

#include <algorithm>
#include <cstring>

#include "kernels/cuda/device/schedule.cuh"

namespace bench {
namespace {

using EncodeTiled = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*,
                                 const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                 CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

EncodeTiled encoder() {
  static EncodeTiled encode = [] {
    void* f = nullptr;
    cudaDriverEntryPointQueryResult found;
    CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault, &found));
    return reinterpret_cast<EncodeTiled>(f);
  }();
  return encode;
}

}  // namespace

// Row-major [rows, columns]; boxes of 128 bytes by box_rows, 128-byte swizzle.
moe::TensorMap make_map(void* base, bool fp8, uint64_t rows, uint64_t columns, uint32_t box_rows,
                        CUtensorMapL2promotion promotion) {
  CUtensorMap map;
  const uint64_t bytes = fp8 ? 1 : 2;
  const cuuint64_t dims[2] = {columns, rows}, strides[1] = {columns * bytes};
  const cuuint32_t box[2] = {static_cast<cuuint32_t>(128 / bytes), box_rows}, steps[2] = {1, 1};
  const CUresult status = encoder()(&map, fp8 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, base,
                                    dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                    promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    std::fprintf(stderr, "cuTensorMapEncodeTiled failed: %d (rows %llu, columns %llu, box %u)\n", int(status),
                 static_cast<unsigned long long>(rows), static_cast<unsigned long long>(columns), box_rows);
    std::exit(3);
  }
  moe::TensorMap result;
  static_assert(sizeof(result) == sizeof(map));
  std::memcpy(&result, &map, sizeof(map));
  return result;
}

Workspace::Workspace(const Layer& l, int max_tokens, int blocks, int max_tile) : layer(l) {
  // A tile may reach past the last row; it must still be inside the allocation.
  row_pitch = (std::max(max_tokens, 1) * l.top_k + max_tile + 63) / 64 * 64;
  const size_t rows = row_pitch, element = l.element_bytes();
  const size_t k_groups = (l.hidden + 127) / 128, n_groups = (l.inter + 127) / 128;
  auto take = [&](auto*& p, size_t bytes) {
    void* raw = nullptr;
    CUDA_CHECK(cudaMalloc(&raw, bytes));
    p = static_cast<std::remove_reference_t<decltype(p)>>(raw);
    buffers.push_back({raw, bytes});
  };
  take(args.x_rows, rows * l.hidden * element);
  take(args.x_scale, rows * k_groups * 4);
  take(args.h_rows, rows * l.inter * element);
  take(args.h_scale, rows * n_groups * 4);
  take(args.h_wide, l.scheme == moe::Scheme::fp8_ptpc ? rows * l.inter * 2 : 16);
  take(args.pair_out, l.top_k > 1 ? rows * l.hidden * 2 : 16);
  take(args.row_weight, rows * 4);
  take(args.row_token, rows * 4);
  take(args.pair_row, rows * 4);
  take(args.expert_rows, l.experts_local * 4);
  take(args.group_rows, (size_t(max_tokens) / 128 + 1) * l.experts_local * 4);
  const size_t tiles = rows / 8 + l.experts_local;
  take(args.counters, (tiles * 3 + 2 * moe::kMaxSplitUnits + l.hidden / 256 + 1) * 4);
  take(args.partial, size_t(2) * moe::kMaxSplitUnits * 256 * 64 * 4);  // tiles of up to 64 tokens
  take(args.trace, size_t(blocks) * 16 * 8);
  // Never poisoned: the kernel needs them zero and leaves them zero, two sets of counters in turn.
  const size_t zeroed = (4 + 2 * (3 * (64 + l.experts_local) + 2 * moe::kMaxSplitUnits + l.hidden / 256 + 2)) * 4;
  CUDA_CHECK(cudaMalloc(&args.drawn, zeroed));
  CUDA_CHECK(cudaMemset(args.drawn, 0, zeroed));
  args.turn = args.drawn + 2;
  zeroed_bytes = zeroed;
  args.row_pitch = row_pitch;
}

Workspace::~Workspace() {
  for (auto& [p, bytes] : buffers) cudaFree(p);
  cudaFree(args.drawn);
}

void Workspace::poison() const {
  for (auto& [p, bytes] : buffers) CUDA_CHECK(cudaMemset(p, 0xff, bytes));
}

moe::LayerArgs Workspace::bind(const Weights& w, const Call& c, const int* expert_map, const Variant& v) const {
  moe::LayerArgs a = args;
  const Layer& l = layer;
  CUDA_CHECK(cudaMemset(args.drawn, 0, zeroed_bytes));  // two variants' sets of counters lie differently
  a.w13_chunks = l.int_bits() != 0 ? w.int13.chunks : w.w13_chunks;
  a.w2_chunks = l.int_bits() != 0 ? w.int2.chunks : w.w2_chunks;
  a.x_order = w.x_order;
  a.x_rows_map = make_map(a.x_rows, l.fp8(), row_pitch, l.hidden, v.token_box);
  a.h_rows_map = make_map(a.h_rows, l.fp8(), row_pitch, l.inter, v.token_box);
  a.x = c.x;
  a.topk_ids = c.ids;
  a.topk_weights = c.weights;
  a.expert_map = expert_map;
  const bool block = l.scheme == moe::Scheme::fp8_block;
  a.w13_scale = block ? w.w13_tile_scale : w.w13_scale;
  a.w2_scale = block ? w.w2_tile_scale : w.w2_scale;
  a.y = c.y;
  a.tokens = c.tokens;
  return a;
}

}  // namespace bench
