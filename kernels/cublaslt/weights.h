// A layer's weights on the device in canonical storage, which is what the library reads, in several
// copies for cold-weight rotation.
#pragma once

#include <array>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cublaslt/schemes/library_scheme.h"
#include "kernels/nvidia/runtime/device.h"

namespace moegauge::cublaslt {

// Expert after expert; the library wants scales that begin at multiples of 16 bytes. Those of
// 128x128 blocks: a row of blocks has a multiple of four; one for a whole matrix is there four
// times.
struct MatrixBuffers {
  cuda::Buffer values, scales, zero_points, group_index, bias;
  std::array<const cuda::Buffer*, 5> all() const {
    return {&values, &scales, &zero_points, &group_index, &bias};
  }
};
struct WeightSet {
  MatrixBuffers w13, w2;
  cuda::Buffer tensor_scale = {};  // calibrated scales of x and of h
};

// Asks `experts` for one expert at a time. Throws CudaFault.
std::vector<WeightSet> upload_weights(const Problem& problem, const LibraryScheme& scheme,
                                      const ExpertSource& experts, int sets,
                                      const cuda::Stream& stream);

// Bytes of one set.
std::int64_t weight_set_bytes(const Problem& problem, const LibraryScheme& scheme);

// Blocks of 128 columns, rounded up to what a row of block scales has.
std::int64_t scale_pitch(std::int64_t columns);
// Canonical scales of blocks with rows of scale_pitch; what is added is zero.
std::vector<float> pad_block_scales(std::span<const std::byte> scales, std::int64_t columns);
// One scale of a matrix as 16 bytes.
std::vector<float> repeat_scale(std::span<const std::byte> scale);

}  // namespace moegauge::cublaslt
