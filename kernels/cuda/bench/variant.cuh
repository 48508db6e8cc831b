// Host side of one compiled configuration: how its kernels are launched.
#pragma once
#include <algorithm>

#include "../device/combine.cuh"
#include "../device/layer.cuh"
#include "../device/prepare.cuh"
#include "bench.h"

namespace bench {

// dependent: may start before the kernel ahead of it in the stream has finished;
// it then waits by itself where it needs that kernel's results.
template <class Kernel>
void launch_kernel(Kernel kernel, int grid, int block, int shared, bool dependent, cudaStream_t stream,
                   const moe::LayerArgs& args) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid);
  config.blockDim = dim3(block);
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = dependent ? 1 : 0;
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, args));
}

template <class C>
void setup_variant() {
  CUDA_CHECK(cudaFuncSetAttribute(moe::layer_kernel<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::kSharedBytes));
}

template <class C>
void launch_variant(const moe::LayerArgs& given, cudaStream_t stream, int blocks, int upto) {
  moe::LayerArgs args = given;
  if (args.tokens == 0) return;
  const int pairs = args.tokens * C::kTopK;
  args.self_count = pairs <= moe::kSelfCountPairs;
  // About four blocks a multiprocessor. A block's pairs must fit its table of 256
  // and lie in one counting group, hence a power of two.
  args.chunk_tokens = 1;
  while (args.chunk_tokens * 2 * C::kTopK <= 256 && args.chunk_tokens * 2 <= moe::kGroupTokens &&
         args.chunk_tokens * 528 < args.tokens)
    args.chunk_tokens *= 2;
  const int chunks = (args.tokens + args.chunk_tokens - 1) / args.chunk_tokens;
  args.tile_capacity = pairs / C::kTokenTile + std::min(C::kExperts, pairs);
  args.counter_words = args.tile_capacity * (3 + (C::kSplit ? C::kWeightTiles1 + C::kWeightTiles2 : 0));
  if (!args.self_count)
    launch_kernel(moe::count_kernel<C>, (args.tokens + moe::kGroupTokens - 1) / moe::kGroupTokens, moe::kPrepareThreads, 0, false, stream, args);
  launch_kernel(moe::prepare_kernel<C>, chunks, moe::kPrepareThreads, 0, !args.self_count, stream, args);
  if (upto < 2) return;
  launch_kernel(moe::layer_kernel<C>, blocks, moe::kLayerThreads, C::kSharedBytes, true, stream, args);
  if (!C::kDirect && upto > 2) {
    const int vectors = args.tokens * (C::kHidden / 8);
    launch_kernel(moe::combine_kernel<C>, (vectors + moe::kCombineThreads - 1) / moe::kCombineThreads,
                  moe::kCombineThreads, 0, true, stream, args);
  }
}

template <class C>
Variant make_variant(const char* layer) {
  return {layer,       C::kTokenTile,    C::kStages,           C::kSplit, C::kPromote, C::kTokenRows, C::kSharedBytes,
          setup_variant<C>, launch_variant<C>};
}

}  // namespace bench
