#include "reference/error.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "reference/dtype.h"

namespace moegauge {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// How far below the overflow threshold rounding can explain an infinity; see error.h.
constexpr double kNearOverflow = 1.0 / 16;

enum class RowKind : std::uint8_t { numbers, nan, not_compared };

// What is known of the reference before any output is seen: many rows of a share one of b.
struct ReferenceRows {
  std::vector<double> values;   // b, within +-overflow_threshold
  std::vector<double> rounded;  // b rounded to the output dtype
  std::vector<RowKind> kind;
};

ReferenceRows prepare(std::span<const double> b, std::int64_t cols, Dtype dtype,
                      std::span<const std::uint8_t> not_compared) {
  const double most = overflow_threshold(dtype);
  ReferenceRows rows;
  rows.values.reserve(b.size());
  rows.rounded.reserve(b.size());
  const std::size_t width = static_cast<std::size_t>(cols);
  for (std::size_t begin = 0; begin < b.size(); begin += width) {
    bool nan = false;
    for (const double value : b.subspan(begin, width)) {
      nan |= std::isnan(value);
      rows.values.push_back(std::clamp(value, -most, most));  // a NaN stays one
      rows.rounded.push_back(round_to(dtype, value));
    }
    const bool skipped = !not_compared.empty() && not_compared[begin / width] != 0;
    rows.kind.push_back(skipped ? RowKind::not_compared : nan ? RowKind::nan : RowKind::numbers);
  }
  return rows;
}

struct RowSums {
  double difference2 = 0, reference2 = 0, output2 = 0, product = 0;
  double max_scaled = 0;
  std::int64_t matched = 0;
};

// Several running sums side by side, which the compiler can keep in vector registers; the order of
// summation is fixed all the same.
constexpr std::size_t kLanes = 8;

RowSums sum_row(const double* a, const double* b, const double* rounded, const double* magnitude,
                std::size_t cols) {
  std::array<double, kLanes> difference2 = {}, reference2 = {}, output2 = {}, product = {};
  std::array<double, kLanes> scaled = {}, matched = {};
  const auto add = [&](std::size_t lane, std::size_t i) {
    const double d = a[i] - b[i];
    difference2[lane] += d * d;
    reference2[lane] += b[i] * b[i];
    output2[lane] += a[i] * a[i];
    product[lane] += a[i] * b[i];
    // 0 / 0 is a NaN and loses the comparison: no deviation where there is no magnitude.
    const double ratio = std::fabs(d) / magnitude[i];
    scaled[lane] = scaled[lane] < ratio ? ratio : scaled[lane];
    matched[lane] += a[i] == rounded[i] ? 1.0 : 0.0;
  };
  std::size_t i = 0;
  for (; i + kLanes <= cols; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) add(lane, i + lane);
  }
  for (; i < cols; ++i) add(0, i);
  RowSums sums;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    sums.difference2 += difference2[lane];
    sums.reference2 += reference2[lane];
    sums.output2 += output2[lane];
    sums.product += product[lane];
    sums.max_scaled = std::max(sums.max_scaled, scaled[lane]);
    sums.matched += static_cast<std::int64_t>(matched[lane]);
  }
  return sums;
}

double ratio_of_norms(double difference2, double reference2) {
  if (difference2 == 0) return 0;
  return reference2 == 0 ? kInfinity : std::sqrt(difference2 / reference2);
}

double cosine(const RowSums& sums) {
  if (sums.output2 == 0 && sums.reference2 == 0) return 1;
  if (sums.output2 == 0 || sums.reference2 == 0) return 0;
  return sums.product / (std::sqrt(sums.output2) * std::sqrt(sums.reference2));
}

// Goes through the outputs row by row.
class Comparison {
 public:
  Comparison(const ReferenceRows& reference, std::span<const double> magnitude, std::int64_t cols,
             Dtype dtype)
      : reference_(reference),
        b_(reference.values),
        magnitude_(magnitude),
        cols_(static_cast<std::size_t>(cols)),
        most_(overflow_threshold(dtype)) {}

  void add(std::int64_t row, std::span<const double> a, std::int64_t pool_row) {
    const auto source = static_cast<std::size_t>(pool_row);
    const RowKind kind = reference_.kind[source];
    if (kind == RowKind::not_compared) return;
    ++metrics_.rows;
    if (kind == RowKind::nan) {
      for (std::size_t i = 0; i < cols_; ++i) {
        const double b = b_[source * cols_ + i];
        const bool as_it_should = std::isnan(b) ? std::isnan(a[i]) : is_number(a[i], b);
        if (!as_it_should) bad(row, i);
      }
      return;
    }
    const std::size_t begin = source * cols_;
    RowSums sums =
        sum_row(a.data(), &b_[begin], &reference_.rounded[begin], &magnitude_[begin], cols_);
    // Squares of 16-bit values cannot overflow a double: the sum is finite if all outputs are.
    const std::int64_t bad_before = metrics_.non_finite;
    if (!std::isfinite(sums.output2)) sums = sum_numbers(row, a, begin);
    const bool sound = metrics_.non_finite == bad_before;
    const double error = sound ? ratio_of_norms(sums.difference2, sums.reference2) : kInfinity;
    if (metrics_.worst_token_row < 0 || error > metrics_.worst_token) {
      metrics_.worst_token = error;
      metrics_.worst_token_row = row;
    }
    total_.difference2 += sums.difference2;
    total_.reference2 += sums.reference2;
    total_.output2 += sums.output2;
    total_.product += sums.product;
    total_.max_scaled = std::max(total_.max_scaled, sums.max_scaled);
    total_.matched += sums.matched;
    compared_ += static_cast<std::int64_t>(cols_);
  }

  ErrorMetrics finish() && {
    metrics_.relative_l2 = ratio_of_norms(total_.difference2, total_.reference2);
    metrics_.max_scaled = total_.max_scaled;
    metrics_.cosine = cosine(total_);
    if (compared_ > 0) {
      metrics_.matched = static_cast<double>(total_.matched) / static_cast<double>(compared_);
    }
    if (metrics_.non_finite > 0) {
      metrics_.relative_l2 = metrics_.worst_token = metrics_.max_scaled = kInfinity;
      metrics_.worst_token_row = *metrics_.first_bad / static_cast<std::int64_t>(cols_);
    } else if (metrics_.worst_token > 0) {
      metrics_.first_bad = metrics_.worst_token_row * static_cast<std::int64_t>(cols_);
    }
    return metrics_;
  }

 private:
  void bad(std::int64_t row, std::size_t col) {
    ++metrics_.non_finite;
    if (!metrics_.first_bad) {
      metrics_.first_bad = row * static_cast<std::int64_t>(cols_) + static_cast<std::int64_t>(col);
    }
  }

  // Finite, or an overflow where the reference overflows or all but does.
  bool is_number(double a, double b) const {
    if (std::isfinite(a)) return true;
    return !std::isnan(a) && std::fabs(std::copysign(most_, a) - b) <= kNearOverflow * most_;
  }

  // A row that holds outputs that are not finite: counts those that should be and sums the others.
  RowSums sum_numbers(std::int64_t row, std::span<const double> a, std::size_t begin) {
    RowSums sums;
    for (std::size_t i = 0; i < cols_; ++i) {
      const double b = b_[begin + i];
      sums.reference2 += b * b;
      if (!is_number(a[i], b)) {
        bad(row, i);
        continue;
      }
      const double output = std::clamp(a[i], -most_, most_);
      const double d = output - b;
      sums.difference2 += d * d;
      sums.output2 += output * output;
      sums.product += output * b;
      const double ratio = std::fabs(d) / magnitude_[begin + i];
      sums.max_scaled = sums.max_scaled < ratio ? ratio : sums.max_scaled;
      sums.matched += a[i] == reference_.rounded[begin + i] ? 1 : 0;
    }
    return sums;
  }

  const ReferenceRows& reference_;
  std::span<const double> b_, magnitude_;
  std::size_t cols_;
  double most_;
  ErrorMetrics metrics_;
  RowSums total_;
  std::int64_t compared_ = 0;
};

}  // namespace

ErrorMetrics measure_error(std::span<const double> a, std::span<const double> b,
                           std::span<const double> magnitude, std::int64_t rows, std::int64_t cols,
                           std::span<const std::int32_t> pool, Dtype dtype,
                           std::span<const std::uint8_t> not_compared) {
  if (rows == 0 || cols == 0) return {};
  const ReferenceRows reference = prepare(b, cols, dtype, not_compared);
  Comparison comparison(reference, magnitude, cols, dtype);
  const auto width = static_cast<std::size_t>(cols);
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto r = static_cast<std::size_t>(row);
    comparison.add(row, a.subspan(r * width, width), pool.empty() ? row : pool[r]);
  }
  return std::move(comparison).finish();
}

}  // namespace moegauge
