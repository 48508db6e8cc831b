#include "reference/inputs/rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "reference/dtype.h"
#include "reference/random/value_table.h"

namespace moegauge {
namespace {

// Rows start at multiples of 8 in a stream, the granularity of ValueTable.
std::int64_t first_value(const RowId& id, std::int64_t cols) {
  return id.row * ((cols + 7) / 8 * 8);
}

class TableRows final : public Rows {
 public:
  TableRows(const RowsSpec& spec, ValueTable table) : spec_(spec), table_(std::move(table)) {}

  void fill(const RowId& id, std::span<float> out) const override {
    table_.fill(RandomStream(spec_.seed, spec_.values, id.tensor), first_value(id, spec_.cols),
                out);
  }
  double largest() const override { return table_.largest(); }

 private:
  RowsSpec spec_;
  ValueTable table_;
};

// About 1% of the columns, the same in all rows and tensors, are larger by a factor drawn from
// [20, 50]; at least one is. The whole keeps its standard deviation.
class HeavyTailRows final : public Rows {
 public:
  static constexpr double kShare = 0.01, kLow = 20, kHigh = 50;

  explicit HeavyTailRows(const RowsSpec& spec)
      : spec_(spec),
        table_(ValueTable::gaussian(spec.deviation / std::sqrt(inflation()), spec.dtype)),
        factors_(static_cast<std::size_t>(spec.cols), 1.0f) {
    RandomWords words(RandomStream(spec.seed, spec.structure, 0));
    const std::uint32_t certain = words.below(static_cast<std::uint32_t>(spec.cols));
    for (std::size_t c = 0; c < factors_.size(); ++c) {
      const bool outlier = words.unit() < kShare || c == certain;
      const double factor = kLow + (kHigh - kLow) * words.unit();
      if (outlier) factors_[c] = static_cast<float>(factor);
    }
  }

  void fill(const RowId& id, std::span<float> out) const override {
    table_.fill(RandomStream(spec_.seed, spec_.values, id.tensor), first_value(id, spec_.cols),
                out);
    for (std::size_t c = 0; c < out.size(); ++c) {
      if (factors_[c] != 1.0f) out[c] = round_to(spec_.dtype, out[c] * factors_[c]);
    }
  }
  double largest() const override {
    return table_.largest() * static_cast<double>(*std::ranges::max_element(factors_));
  }

 private:
  // Variance of the mixture over that of its base: 1 + share (E f^2 - 1).
  static double inflation() {
    const double square = (kHigh * kHigh + kHigh * kLow + kLow * kLow) / 3;
    return 1 + kShare * (square - 1);
  }

  RowsSpec spec_;
  ValueTable table_;
  std::vector<float> factors_;
};

// Groups (parts of scale units at most 128 wide) that are all zero, denormal, at the format's
// maximum times a power of two, all equal, or equal but for the sign, among gaussian ones; and
// whole unit rows of zeros. A unit row that is not all zero holds a gaussian group, because a token
// of nothing but denormals would be judged by how they are flushed.
class DegenerateRows final : public Rows {
 public:
  explicit DegenerateRows(const RowsSpec& spec)
      : spec_(spec), table_(ValueTable::gaussian(spec.deviation, spec.dtype)) {
    const bool scaled = spec.operand.scale != ScaleKind::none;
    unit_rows_ = scaled ? unit_or_whole(spec.operand.unit.rows, spec.rows) : 1;
    unit_rows_ = std::max<std::int64_t>(unit_rows_, 1);
    group_ = std::min<std::int64_t>(
        {128, scaled ? unit_or_whole(spec.operand.unit.cols, 128) : 128, spec.cols});
    const double highest = spec.operand.highest > 0 ? spec.operand.highest : 448;
    // The power of two that takes the maximum to between 2 and 4 deviations.
    maximum_ = std::ldexp(highest, 2 + std::ilogb(spec.deviation) - std::ilogb(highest));
  }

  void fill(const RowId& id, std::span<float> out) const override {
    const RandomStream values(spec_.seed, spec_.values, id.tensor);
    table_.fill(values, first_value(id, spec_.cols), out);
    const auto groups = static_cast<std::uint32_t>((spec_.cols + group_ - 1) / group_);
    RandomWords words(RandomStream(spec_.seed, spec_.structure, id.tensor),
                      static_cast<std::uint32_t>(id.stored / unit_rows_) * (groups / 4 + 1));
    const std::uint32_t choice = words.next();
    const bool all_zero = choice % 16 == 0;
    const std::uint32_t ordinary = (choice >> 4) % groups;
    for (std::uint32_t g = 0; g < groups; ++g) {
      const std::uint32_t word = words.next();
      const auto begin = static_cast<std::size_t>(g) * static_cast<std::size_t>(group_);
      const auto part =
          out.subspan(begin, std::min(static_cast<std::size_t>(group_), out.size() - begin));
      if (all_zero)
        std::ranges::fill(part, 0.0f);
      else if (g != ordinary)
        degrade(part, word);
    }
  }
  double largest() const override { return std::max<double>(table_.largest(), maximum_); }

 private:
  // `part` holds gaussian values, whose signs and bits serve as the randomness.
  void degrade(std::span<float> part, std::uint32_t word) const {
    const float one =
        round_to(spec_.dtype, static_cast<float>(spec_.deviation * (1 + (word >> 16) * 0x1p-16)));
    for (float& v : part) {
      switch (word % 16) {
        case 0:
        case 1:
          v = 0;
          break;
        case 2:
          v = denormal(v);
          break;
        case 3:
          v = std::copysign(static_cast<float>(maximum_), v);
          break;
        case 4:
          if (std::fabs(v) > spec_.deviation) v = std::copysign(static_cast<float>(maximum_), v);
          break;
        case 5:
          v = one;
          break;
        case 6:
          v = std::copysign(one, v);
          break;
        default:
          return;
      }
    }
  }

  // A denormal of the dtype with the mantissa bits of v.
  float denormal(float v) const {
    const std::uint16_t bits = to_bits(spec_.dtype, v);
    const int mantissa_bits = spec_.dtype == Dtype::bf16 ? 7 : 10;
    const auto mantissa = static_cast<std::uint16_t>((1 << mantissa_bits) - 1);
    return to_float(spec_.dtype, static_cast<std::uint16_t>(bits & (0x8000 | mantissa)));
  }

  RowsSpec spec_;
  ValueTable table_;
  std::int64_t unit_rows_ = 1, group_ = 128;
  double maximum_ = 0;
};

}  // namespace

std::unique_ptr<Rows> random_rows(Distribution distribution, const RowsSpec& spec) {
  switch (distribution) {
    case Distribution::heavy_tail:
      return std::make_unique<HeavyTailRows>(spec);
    case Distribution::degenerate:
      return std::make_unique<DegenerateRows>(spec);
    case Distribution::uniform:
      return std::make_unique<TableRows>(spec, ValueTable::uniform(spec.deviation, spec.dtype));
    case Distribution::gaussian:
    case Distribution::exact:
      break;
  }
  return std::make_unique<TableRows>(spec, ValueTable::gaussian(spec.deviation, spec.dtype));
}

}  // namespace moegauge
