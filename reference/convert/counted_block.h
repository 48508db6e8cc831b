// One block of mxfp8_to_block by counting, for any block and any processor.
//
// A block has few different scales, and 256 different values under each: what happens to an element
// is a table by (scale, value). How often each occurs gives amax, the errors and the non-finite
// elements exactly, in any order of counting. So an element costs one increment and one look-up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/convert/mxfp8_to_block.h"

namespace moegauge {

class CountedBlock {
 public:
  // Counts `n` elements under one scale.
  void count(const std::uint8_t* values, std::int64_t n, std::uint8_t scale);
  // Once all is counted: the block's scale, and what replaces each value under each scale.
  float close(bool fnuz, BlockConversion& sums);
  void replace(std::uint8_t* values, std::int64_t n, std::uint8_t scale) const;
  void clear();

 private:
  static constexpr std::int64_t lanes = 4;

  struct Table {
    std::uint8_t scale = 0;
    std::array<std::array<std::uint32_t, 256>, lanes> counts;
    std::array<float, 128> magnitudes;  // dequantised
    std::array<std::uint8_t, 256> codes;

    std::int64_t count_both_signs(std::size_t magnitude) const {
      return std::int64_t{counts[0][magnitude]} + counts[0][magnitude | 0x80];
    }
  };
  static constexpr std::uint16_t unused = 256;

  Table& table_of(std::uint8_t scale);
  static float dequantise(Table& table, BlockConversion& sums);
  static void requantise(Table& table, float scale, bool fnuz, BlockConversion& sums);

  std::array<std::uint16_t, 256> place_ = [] {
    std::array<std::uint16_t, 256> places;
    places.fill(unused);
    return places;
  }();
  std::vector<Table> tables_;
  std::size_t used_ = 0;
};

}  // namespace moegauge
