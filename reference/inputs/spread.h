// Powers of two by which scale units are told apart.
#pragma once

#include <cmath>
#include <cstdint>

#include "reference/random/stream.h"
#include "reference/schemes/scheme.h"

namespace moegauge {

class UnitSpread {
 public:
  // `unit` without zeros; exponents are uniform integers in [low, high].
  UnitSpread(std::uint64_t seed, Purpose purpose, const ScaleUnit& unit, std::int64_t cols, int low,
             int high)
      : seed_(seed),
        purpose_(purpose),
        unit_(unit),
        low_(low),
        high_(high),
        across_((cols + unit.cols - 1) / unit.cols) {}

  bool flat() const { return low_ == 0 && high_ == 0; }
  std::int64_t unit_cols() const { return unit_.cols; }

  // Of the unit that holds (row, col) in the tensor of one expert.
  double factor(std::uint64_t expert, std::int64_t row, std::int64_t col) const {
    if (flat()) return 1;
    const std::int64_t number = row / unit_.rows * across_ + col / unit_.cols;
    const std::uint32_t word =
        RandomStream(seed_, purpose_, expert).word(static_cast<std::uint64_t>(number));
    const auto count = static_cast<std::uint64_t>(high_ - low_) + 1;
    return std::ldexp(1.0, low_ + static_cast<int>(word * count >> 32));
  }

 private:
  std::uint64_t seed_;
  Purpose purpose_;
  ScaleUnit unit_;
  int low_, high_;
  std::int64_t across_;
};

}  // namespace moegauge
