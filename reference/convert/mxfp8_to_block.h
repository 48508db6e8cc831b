// MXFP8 weights as block FP8, for machines without matrix instructions for microscaling formats:
//   v = bf16(E4M3FN value * 2^(E8M0 - 127)), a scale per 1x32 group;
//   s = amax(v over the block) / 448 in fp32, a scale per block of 128x128, the last ones ragged;
//   q = E4M3FN(v / s), division in fp32, to nearest even, saturating.
// As FNUZ (gfx94x) the bytes are then kept and the scales doubled; 0x80 (-0) becomes 0x00 and NaN
// 0x80.
//
// A block of zeros alone has the scale 1e-10 / 448 (doubled under FNUZ), as fp8_block gives it.
// What is not finite does not count towards amax: NaN stays NaN, an infinity (a product beyond
// bf16) saturates.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "reference/base/thread_pool.h"

namespace moegauge {

inline constexpr std::int64_t mx_group = 32;
// Largest block extent: an element count fits 32 bits.
inline constexpr std::int64_t max_block_extent = 32768;

struct MxTensor {
  std::int64_t experts = 1, rows = 0, cols = 0;
  std::span<const std::uint8_t> values;  // E4M3FN [experts, rows, cols]
  std::span<const std::uint8_t> scales;  // E8M0 [experts, rows, ceil(cols / 32)]
};

struct BlockTarget {
  std::int64_t block_rows = 128, block_cols = 128;  // 1 .. max_block_extent
  bool fnuz = false;
};

struct BlockConversion {
  double difference_squares = 0;       // sum of (q * s - v)^2 over finite v
  double value_squares = 0;            // sum of v^2 over the same
  std::int64_t non_finite = 0;         // elements v that are NaN or infinite
  std::int64_t first_non_finite = -1;  // row-major element index

  // ||q * s - v|| / ||v||; 0 where every v is 0.
  double relative_error() const;
  BlockConversion& operator+=(const BlockConversion& next);
};

// Takes converted bytes from element `first` on. Called from several threads at once, in any order,
// once for each element; the bytes are only good during the call.
using ValueSink = std::function<void(std::int64_t first, std::span<const std::uint8_t> values)>;

// Extent of the scales along an axis of `extent` elements.
constexpr std::int64_t blocks_of(std::int64_t extent, std::int64_t block) {
  return extent / block + (extent % block != 0 ? 1 : 0);
}

// `scales`: [experts, ceil(rows / block_rows), ceil(cols / block_cols)]. The same bits and sums for
// any number of threads. Each thread holds one row of blocks. Sizes that do not match throw
// std::invalid_argument.
BlockConversion mxfp8_to_block(const MxTensor& tensor, const BlockTarget& target, ThreadPool& pool,
                               std::span<float> scales, const ValueSink& sink);

}  // namespace moegauge
