// Host side of one compiled configuration: how its kernels are launched.
#pragma once
#include <algorithm>
#include <cstdlib>

#include "kernels/cuda/device/combine.cuh"
#include "kernels/cuda/device/layer.cuh"
#include "kernels/nvidia/device/prepare.cuh"
#include "kernels/cuda/device/schedule.cuh"
#include "kernels/cuda/bench/bench.h"

namespace bench {

// dependent: may start before the kernel ahead of it in the stream has finished;
// it then waits by itself where it needs that kernel's results.
template <class Kernel>
void launch_kernel(Kernel kernel, int grid, int block, int shared, bool dependent, cudaStream_t stream,
                   const moe::LayerArgs& args, int cluster = 1) {
  cudaLaunchAttribute attributes[2] = {};
  int count = 0;
  if (dependent) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count].val.clusterDim.x = cluster;
    attributes[count].val.clusterDim.y = attributes[count].val.clusterDim.z = 1;
    ++count;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid);
  config.blockDim = dim3(block);
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = count;
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, args));
}

template <class C>
void setup_variant() {
  CUDA_CHECK(cudaFuncSetAttribute(moe::layer_kernel<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::kSharedBytes));
  if constexpr (C::kAloneMost > 0)
    CUDA_CHECK(cudaFuncSetAttribute(moe::layer_kernel<typename C::WhenAlone>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::kAloneBytes));
}

// Blocks of the layer kernel: all must be resident at once, since phase 1 waits for
// rows that other blocks make. Pairs: as many clusters as the device can hold.
template <class C>
int layer_blocks(int multiprocessors) {
  if (!C::kPairs) return multiprocessors;
  static const int clusters = [] {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 2;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(2);
    config.blockDim = dim3(moe::kLayerThreads);
    config.dynamicSmemBytes = C::kSharedBytes;
    config.attrs = &attribute;
    config.numAttrs = 1;
    int n = 0;
    CUDA_CHECK(cudaOccupancyMaxActiveClusters(&n, moe::layer_kernel<C>, &config));
    return n;
  }();
  return std::min(clusters, multiprocessors / 2) * 2;
}

template <class C>
void launch_variant(const moe::LayerArgs& given, cudaStream_t stream, int blocks, int upto) {
  moe::LayerArgs args = given;
  if (args.tokens == 0) return;
  const int pairs = args.tokens * C::kTopK;
  args.self_count = pairs <= moe::kSelfCountPairs;
  args.early_stages = 3 * 32768 / C::kWeightBytes;  // 12 MB over the device, about prepare's time
  // About eight blocks a multiprocessor, four of wide rows while they are short. A block's pairs
  // must fit its table of 256 and lie in one counting group, hence a power of two.
  args.chunk_tokens = 1;
  while (args.chunk_tokens * 2 * C::kTopK <= 256 && args.chunk_tokens * 2 <= moe::kGroupTokens &&
         (args.chunk_tokens * 1056 < args.tokens || (C::kHidden > 4096 && args.chunk_tokens < 8 && args.chunk_tokens * 528 < args.tokens)))
    args.chunk_tokens *= 2;
  const int chunks = (args.tokens + args.chunk_tokens - 1) / args.chunk_tokens;
  args.tile_capacity = pairs / C::kTokenTile + std::min(C::kExperts, pairs);
  args.counter_words = args.tile_capacity * 3 + (C::kSplit ? 2 * moe::kMaxSplitUnits : 0);
  args.combined = 0;
  if (!C::kDirect && !C::kTokenRows && pairs <= moe::kInsidePairs) {
    args.combined = args.counter_words;
    args.counter_words += C::kWeightTiles2;
  }
  if constexpr (C::kAloneMost > 0) {
    const bool rounds = C::kHidden > 4096 && args.tokens > 2;  // of making tokens
    if (!rounds && pairs <= moe::kInsidePairs && args.tokens <= C::kAloneMost && std::getenv("NOT_ALONE") == nullptr) {
      // Counters that nobody poisons: zero at first, and left zero by every launch for the next.
      args.counters = args.turn + 2;
      if (upto > 1)
        launch_kernel(moe::layer_kernel<typename C::WhenAlone>, blocks, moe::kLayerThreads, C::kAloneBytes, true, stream, args);
      return;
    }
  }
  if (!args.self_count)
    launch_kernel(moe::count_kernel<C>, (args.tokens + moe::kGroupTokens - 1) / moe::kGroupTokens, moe::kPrepareThreads, 0, true, stream, args);
  launch_kernel(moe::prepare_kernel<C>, chunks, moe::kPrepareThreads, 0, true, stream, args);
  if (upto < 2) return;
  launch_kernel(moe::layer_kernel<C>, layer_blocks<C>(blocks), moe::kLayerThreads, C::kSharedBytes, true, stream, args, C::kPairs ? 2 : 1);
  if (!C::kDirect && args.combined == 0 && upto > 2)
    launch_kernel(moe::combine_kernel<C>, args.tokens, moe::kCombineThreads, 0, true, stream, args);
}

template <class C>
Variant make_variant(const char* layer) {
  return {layer,       C::kTokenTile,    C::kStages,           C::kSplit, C::kPromote || C::kIntBits != 0, C::kTokenRows, C::kPairs, C::kDealt, C::kTokenBox, C::kSharedBytes,
          setup_variant<C>, launch_variant<C>};
}

}  // namespace bench
