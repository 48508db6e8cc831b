// Last kernel of a layer: y[m] = sum over the token's local pairs, in choice order, in fp32. A
// block a token.
#pragma once
#include "kernels/hip/device/config.h"
#include "kernels/hip/device/quantise_rows.h"

namespace moe {

MOE_DEVICE void combine_token(const LayerArgs& args) {
  const int token = gpu::block();
  const int* rows = args.pair_row + static_cast<i64>(token) * args.top_k;
  for (int k = gpu::thread() * 8; k < args.hidden; k += kPrepareThreads * 8) {
    float sum[8] = {};
    for (int t = 0; t < args.top_k; ++t) {
      const int row = rows[t];
      if (row < 0) continue;
      const Halves8 part = *reinterpret_cast<const Halves8*>(
          args.pair_out + static_cast<i64>(row) * args.hidden + k);
#pragma unroll
      for (int i = 0; i < 8; ++i) sum[i] += half_to_float(part.v[i], args.fp16);
    }
    Halves8 out;
#pragma unroll
    for (int i = 0; i < 8; ++i) out.v[i] = float_to_half(sum[i], args.fp16);
    *reinterpret_cast<Halves8*>(args.y + static_cast<i64>(token) * args.hidden + k) = out;
  }
}

}  // namespace moe
