// The kernels between and behind the library's GEMMs: activation function and quantisation, and the
// weighted sum of a token's pairs.
#pragma once
#include "kernels/cublaslt/device/library_args.cuh"
#include "kernels/nvidia/device/prepare.cuh"

namespace moe {

// Beside LayerConfig: kN as it is (LayerConfig's is padded); kWide: gate and up wait in fp32, because
// something is added or multiplied before they are rounded.
template <class C_, int kN_, bool kWide_, bool kInterleaved_>
struct Library {
  using C = C_;
  static constexpr int kN = kN_, kVectors = ceil_div(kN_, kAroundThreads * 8);
  static constexpr bool kWide = kWide_, kInterleaved = kInterleaved_;
  static_assert(kN % 8 == 0, "rows of h are read in pieces of 16 bytes");
};

template <class C>
MOE_DEVICE void unpack8(const u16* from, float (&to)[8]) {
  const Vec8 v = load8(from);
#pragma unroll
  for (int i = 0; i < 4; ++i) to[2 * i] = C::H::low(v.w[i]), to[2 * i + 1] = C::H::high(v.w[i]);
}
template <class L>
MOE_DEVICE void load_sums(const LibraryArgs& lib, i64 at, float (&to)[8]) {
  if constexpr (L::kWide) {
    const float4* from = reinterpret_cast<const float4*>(static_cast<const float*>(lib.gate_up) + at);
    const float4 a = from[0], b = from[1];
    to[0] = a.x, to[1] = a.y, to[2] = a.z, to[3] = a.w, to[4] = b.x, to[5] = b.y, to[6] = b.z, to[7] = b.w;
  } else {
    unpack8<typename L::C>(static_cast<const u16*>(lib.gate_up) + at, to);
  }
}

// Gate and up of columns [8 vector, 8 vector + 8) of h.
template <class L>
MOE_DEVICE void load_gate_up(const LibraryArgs& lib, int row, int vector, float (&gate)[8], float (&up)[8]) {
  const i64 first = static_cast<i64>(row) * 2 * L::kN;
  if constexpr (L::kInterleaved) {
    float low[8], high[8];
    load_sums<L>(lib, first + vector * 16, low);
    load_sums<L>(lib, first + vector * 16 + 8, high);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      gate[i] = low[2 * i], up[i] = low[2 * i + 1];
      gate[4 + i] = high[2 * i], up[4 + i] = high[2 * i + 1];
    }
  } else {
    load_sums<L>(lib, first + vector * 8, gate);
    load_sums<L>(lib, first + L::kN + vector * 8, up);
  }
}

template <class L>
MOE_DEVICE void add_bias(const float* bias, int vector, float (&gate)[8], float (&up)[8]) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int n = vector * 8 + i;
    gate[i] += bias[L::kInterleaved ? 2 * n : n];
    up[i] += bias[L::kInterleaved ? 2 * n + 1 : L::kN + n];
  }
}

// The local expert of a row, for all threads.
template <class C>
MOE_DEVICE int expert_of_row(const LayerArgs& args, int row) {
  __shared__ int first_row[C::kExperts + 1];
  if (threadIdx.x < 32) scan_experts(args.expert_rows, C::kExperts, 1, first_row, nullptr, nullptr, threadIdx.x);
  __syncthreads();
  int low = 0, high = C::kExperts - 1;  // the last expert that begins at or before the row
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (first_row[middle] <= row) low = middle;
    else high = middle - 1;
  }
  return low;
}

// h of one row's columns, rounded to 16 bits.
template <class L>
MOE_DEVICE Vec8 activated(const LayerArgs& args, const LibraryArgs& lib, int row, int vector, const float* bias) {
  using C = typename L::C;
  float gate[8], up[8];
  load_gate_up<L>(lib, row, vector, gate, up);
  if constexpr (C::kBias) add_bias<L>(bias, vector, gate, up);
  if constexpr (C::kWeightOnInput) {
    const float weight = args.row_weight[row];
#pragma unroll
    for (int i = 0; i < 8; ++i) gate[i] *= weight, up[i] *= weight;
  }
  activate<C, 1>(args, gate, up);
  Vec8 h;
#pragma unroll
  for (int i = 0; i < 4; ++i) h.w[i] = C::H::pack(gate[2 * i], gate[2 * i + 1]);
  return h;
}

MOE_DEVICE void store16(void* to, const Vec8& v) { *static_cast<uint4*>(to) = make_uint4(v.w[0], v.w[1], v.w[2], v.w[3]); }

// A row's maximum over all threads.
MOE_DEVICE float block_max(float v) {
  __shared__ float warps[kAroundThreads / 32];
#pragma unroll
  for (int d = 16; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < kAroundThreads / 32; ++w) v = fmaxf(v, warps[w]);
  return v;
}

// A block a row.
template <class L>
__global__ void __launch_bounds__(kAroundThreads) activation_kernel(const __grid_constant__ LayerArgs args, const __grid_constant__ LibraryArgs lib) {
  using C = typename L::C;
  const int row = blockIdx.x, thread = threadIdx.x;
  const float* bias = nullptr;
  if constexpr (C::kBias) bias = args.w13_bias + static_cast<i64>(expert_of_row<C>(args, row)) * 2 * L::kN;
  const i64 first = static_cast<i64>(row) * L::kN;
  Vec8 h[L::kVectors];
  bool finite = true;
  float amax = 0.0f;
#pragma unroll
  for (int i = 0; i < L::kVectors; ++i) {
    const int vector = i * kAroundThreads + thread;
    h[i] = vector * 8 < L::kN ? activated<L>(args, lib, row, vector, bias) : Vec8{};
    if constexpr (C::kElementBytes == 2 || C::kTensorAmax) {
      if (vector * 8 < L::kN) store16(lib.h + first + vector * 8, h[i]);
    }
    if constexpr (C::kBlockScales) {  // 16 lanes have a group of 128
      bool group_finite = true;
      float group = max8<C>(h[i], group_finite);
#pragma unroll
      for (int d = 8; d > 0; d /= 2) group = fmaxf(group, __shfl_xor_sync(0xffffffffu, group, d));
      if (vector * 8 < L::kN) {
        const float s = unit_scale<C>(group);
        *reinterpret_cast<uint2*>(lib.h_codes + first + vector * 8) = quantise8<C>(h[i], s, group_finite);
        if (vector % 16 == 0) lib.h_scale[static_cast<i64>(vector / 16) * args.row_pitch + row] = s;
      }
    } else if constexpr (C::kChannelScales && !C::kTensorGiven) {
      amax = fmaxf(amax, max8<C>(h[i], finite));
    }
  }
  if constexpr (C::kTensorAmax) {
    amax = block_max(amax);
    if (thread == 0 && amax > 0.0f) atomicMax(lib.h_amax, __float_as_uint(amax));
  } else if constexpr (C::kChannelScales) {
    const float s = C::kTensorGiven ? args.tensor_scale[1] : row_scale<C>(block_max(amax));
    if (thread == 0) lib.h_scale[row] = s;
#pragma unroll
    for (int i = 0; i < L::kVectors; ++i) {
      const int vector = i * kAroundThreads + thread;
      // Not looked at where no maximum is taken.
      if (vector * 8 < L::kN)
        *reinterpret_cast<uint2*>(lib.h_codes + first + vector * 8) = quantise8<C>(h[i], s, finite && !C::kTensorGiven);
    }
  }
}

// fp8_tensor: all of h by one scale, once its maximum is known.
template <class L>
__global__ void __launch_bounds__(kAroundThreads) quantise_kernel(const __grid_constant__ LayerArgs args, const __grid_constant__ LibraryArgs lib) {
  const int row = blockIdx.x;
  const float s = block_scale(__uint_as_float(*lib.h_amax));
  if (threadIdx.x == 0) lib.h_scale[row] = s;
  const i64 first = static_cast<i64>(row) * L::kN;
  for (int at = threadIdx.x * 8; at < L::kN; at += kAroundThreads * 8)
    *reinterpret_cast<uint2*>(lib.h_codes + first + at) = quantise8<typename L::C>(load8(lib.h + first + at), s, false);
}

// y[m]: a token's local pairs, bias and router weight, summed in fp32 in choice order. A block a token.
template <class L>
__global__ void __launch_bounds__(kAroundThreads) reduce_kernel(const __grid_constant__ LayerArgs args, const __grid_constant__ LibraryArgs lib) {
  using C = typename L::C;
  const int token = blockIdx.x, first_pair = token * C::kTopK;
  for (int k = threadIdx.x * 8; k < C::kHidden; k += kAroundThreads * 8) {
    float sum[8] = {};
#pragma unroll
    for (int t = 0; t < C::kTopK; ++t) {
      const int row = args.pair_row[first_pair + t];
      if (row < 0) continue;
      float pair[8];
      unpack8<C>(lib.down + static_cast<i64>(row) * C::kHidden + k, pair);
      const float* bias = nullptr;
      if constexpr (C::kBias)
        bias = args.w2_bias + static_cast<i64>(local_expert(args.topk_ids[first_pair + t], args.expert_map)) * C::kHidden + k;
      const float weight = C::kWeightOnInput ? 1.0f : args.topk_weights[first_pair + t];
#pragma unroll
      for (int i = 0; i < 8; ++i) sum[i] += __fmul_rn(pair[i] + (C::kBias ? bias[i] : 0.0f), weight);
    }
    Vec8 y;
#pragma unroll
    for (int i = 0; i < 4; ++i) y.w[i] = C::H::pack(sum[2 * i], sum[2 * i + 1]);
    store16(args.y + static_cast<i64>(token) * C::kHidden + k, y);
  }
}

// A block an expert and a share of the units.
__global__ void __launch_bounds__(kAroundThreads) regroup_kernel(const __grid_constant__ RegroupArgs args) {
  __shared__ int before[2];  // rows of the experts ahead, as they are and rounded up to four
  const int expert = blockIdx.x;
  if (threadIdx.x < 2) before[threadIdx.x] = 0;
  __syncthreads();
  for (int e = threadIdx.x; e < expert; e += kAroundThreads) {
    atomicAdd(&before[0], args.expert_rows[e]);
    atomicAdd(&before[1], (args.expert_rows[e] + 3) / 4 * 4);
  }
  __syncthreads();
  const int rows = args.expert_rows[expert], pitch = (rows + 3) / 4 * 4;
  const float* from = args.from + before[0];
  float* to = args.to + static_cast<i64>(before[1]) * args.units;
  for (int unit = blockIdx.y; unit < args.units; unit += gridDim.y)
    for (int r = threadIdx.x; r < pitch; r += kAroundThreads)
      to[static_cast<i64>(unit) * pitch + r] = r < rows ? from[static_cast<i64>(unit) * args.row_pitch + r] : 0.0f;
}

}  // namespace moe
