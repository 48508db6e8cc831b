// Weights that are multiplied as they are, from canonical storage into the chunks that the layer
// kernel reads (../nvidia/device/box_layout.h), and their scales in the order of its tiles. Plain
// CPU code, done once when a layer is loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/schemes/scheme.h"

namespace moegauge::cuda {

// How the kernels read the scales of weights that are not integers.
enum class WeightScales : std::uint8_t {
  none,
  blocks,    // one for 128x128 of canonical storage: [tiles, 256 / scale_rows, steps of 128]
  channels,  // one a row: gate's, padded to a multiple of 64, then up's; or those of w2
  matrix,    // one, repeated as channels
  units,     // microscaling: one for 1x32, packed into the chunks
};
// Bytes of one chunk, and of one expert's packed matrix.
std::int64_t box_chunk_bytes(WeightScales kind);
std::size_t boxed_bytes(const MatrixShape& shape, int element_bytes, WeightScales kind);
void pack_boxes(const ConstMatrix& from, int element_bytes, WeightScales kind,
                std::span<std::byte> to);

std::size_t scale_count(WeightScales kind, const MatrixShape& shape);
void pack_scales(WeightScales kind, const ConstMatrix& from, std::span<float> to);
// One value a row of canonical storage, in the order of WeightScales::channels.
void pack_channels(const MatrixShape& shape, std::span<const float> from, std::span<float> to);

}  // namespace moegauge::cuda
