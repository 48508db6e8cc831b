// Weights as the kernels read them: see device/layer_args.h.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/hip/layer_format.h"
#include "reference/schemes/scheme.h"

namespace moegauge::hip {

// Of one expert's matrix.
struct PackedShape {
  std::int64_t tiles = 0, steps = 0;  // of 16 rows by 128 bytes
  std::size_t values = 0;             // bytes
  std::size_t scales = 0;             // floats
};
PackedShape packed_shape(const Layer& layer, const LayerFormat& format, Role role);

// `values` and `scales` have the shape's sizes. Rows and columns that are not in the matrix become
// zero.
void pack(const Layer& layer, const Scheme& scheme, const LayerFormat& format,
          const ConstMatrix& matrix, std::span<std::byte> values, std::span<float> scales);

// Why a layer's blocks cannot be packed, or nothing.
std::optional<std::string> straddles(const Layer& layer, const LayerFormat& format);

}  // namespace moegauge::hip
