// Random values by table: 16 random bits i pick the distribution's quantile at (i + 0.5) / 65536,
// so that one Philox block gives eight values. The tails end at the outermost quantile (4.2
// standard deviations of the normal distribution).
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "reference/layer.h"
#include "reference/random/stream.h"

namespace moegauge {

class ValueTable {
 public:
  // Mean 0 and the given standard deviation, each value rounded once to `dtype`.
  static ValueTable gaussian(double deviation, Dtype dtype);
  static ValueTable uniform(double deviation, Dtype dtype);

  float at(std::uint32_t bits) const { return values_[bits & 0xFFFFu]; }
  float largest() const { return values_.back(); }

  // Values [first, first + out.size()) of the sequence that `stream` names; `first` is a multiple
  // of 8. At most 2^35 values in a stream.
  void fill(const RandomStream& stream, std::int64_t first, std::span<float> out) const;

 private:
  explicit ValueTable(std::vector<float> values) : values_(std::move(values)) {}
  std::vector<float> values_;
};

}  // namespace moegauge
