// An expert's integer weights as the 16-bit matrix that the library multiplies: (code - zero point) *
// scale, exact in fp32 and rounded once. A thread has eight columns of a row.
#pragma once
#include "kernels/cublaslt/device/library_args.cuh"
#include "kernels/nvidia/device/half.cuh"

namespace moe {

template <bool kFp16>
__global__ void __launch_bounds__(kAroundThreads) dequantise_kernel(const __grid_constant__ IntegerArgs args) {
  using H = Half<kFp16>;
  const int vectors = args.columns / 8;
  const i64 at = static_cast<i64>(blockIdx.x) * kAroundThreads + threadIdx.x;
  if (at >= static_cast<i64>(args.rows) * vectors) return;
  const int row = static_cast<int>(at / vectors), column = static_cast<int>(at % vectors) * 8;
  u32 low, high = 0;  // eight codes, the first in the lowest bits
  if (args.bits == 4) {
    low = *reinterpret_cast<const u32*>(args.codes + (static_cast<i64>(row) * args.columns + column) / 2);
  } else {
    const uint2 codes = *reinterpret_cast<const uint2*>(args.codes + static_cast<i64>(row) * args.columns + column);
    low = codes.x, high = codes.y;
  }
  auto code = [&](int i) {
    return args.bits == 4 ? (low >> (4 * i)) & 15u : ((i < 4 ? low : high) >> (8 * (i % 4))) & 255u;
  };
  auto zero_point = [&](int group) -> u32 {
    if (args.zero_points == nullptr) return args.bits == 4 ? 8u : 128u;
    if (args.bits == 8) return args.zero_points[static_cast<i64>(row) * args.scales_of_row + group];
    return (args.zero_points[static_cast<i64>(row / 2) * args.scales_of_row + group] >> (row % 2 * 4)) & 15u;
  };
  float w[8];
  int known = -1;
  float scale = 0.0f;
  u32 zero = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int group = args.group_index != nullptr ? args.group_index[column + i] : args.group == 0 ? 0 : (column + i) / args.group;
    if (group != known) {
      known = group;
      scale = H::low(args.scales[static_cast<i64>(row) * args.scales_of_row + group]);
      zero = zero_point(group);
    }
    w[i] = static_cast<float>(static_cast<int>(code(i)) - static_cast<int>(zero)) * scale;
  }
  *reinterpret_cast<uint4*>(args.out + static_cast<i64>(row) * args.columns + column) =
      make_uint4(H::pack(w[0], w[1]), H::pack(w[2], w[3]), H::pack(w[4], w[5]), H::pack(w[6], w[7]));
}

}  // namespace moe
