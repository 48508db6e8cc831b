// One block of mxfp8_to_block with AVX-512 and its byte permutations (VBMI), where the processor
// has them: the same bytes and scale as by counting, sums that differ from those of counting in
// about the eighth digit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "reference/convert/mxfp8_to_block.h"

namespace moegauge {

// A block of whole groups, converted in place.
struct GroupedBlock {
  std::int64_t rows = 0, groups = 0;  // of a row
  std::uint8_t* values = nullptr;
  std::int64_t row_stride = 0;
  const std::uint8_t* scales = nullptr;
  std::int64_t scale_stride = 0;
};

class BlockAvx512 {
 public:
  // nullptr where the processor cannot.
  static std::unique_ptr<BlockAvx512> make();
  virtual ~BlockAvx512() = default;
  // The block's scale; adds to `sums`. Nothing, and nothing touched, where the block holds what is
  // not finite, nothing but zeros, or products at either end of bf16's range: those are counted.
  virtual std::optional<float> convert(const GroupedBlock& block, bool fnuz,
                                       BlockConversion& sums) = 0;
};

}  // namespace moegauge
