#include "reference/schemes/wna16.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>

#include "reference/dtype.h"
#include "reference/formats/int4.h"
#include "reference/schemes/half.h"
#include "reference/schemes/units.h"

namespace moegauge {
namespace {

// Half to even, for |value| < 2^22.
float round_to_integer(float value) { return (value + 0x1.8p23f) - 0x1.8p23f; }

// Smallest and largest finite weight of a group, zero included.
struct Range {
  float low = 0, high = 0;
  void add(float value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// A group's code for 0 and the step between codes.
struct Step {
  int zero = 0;
  float scale = 0;
};

// Where a code lies: its byte, and which nibble of it if codes have four bits.
struct Place {
  std::size_t byte = 0;
  int element = 0;
};

struct GroupOption {
  std::string_view name;
  std::int64_t group;
};
constexpr GroupOption kGroupOptions[] = {{"channel", 0}, {"g32", 32}, {"g64", 64}, {"g128", 128}};

class WnA16 final : public Scheme {
 public:
  explicit WnA16(const WnA16Spec& spec) : spec_(spec) {}

  std::string name() const override;
  SchemeTraits traits() const override;
  std::string_view config_dtype() const override { return spec_.config_dtype; }
  std::optional<std::pair<int, int>> config_block_shape() const override { return std::nullopt; }
  ErrorLimits error_limits(Dtype dtype, bool) const override { return half_limits(dtype); }
  MatrixBytes weight_bytes(const MatrixShape& shape) const override;
  void quantize_weight(std::span<const float> w, const Matrix& out) const override;
  void dequantize_weight(const ConstMatrix& w, std::int64_t begin, std::int64_t end,
                         std::span<double> out) const override;
  void emulate_activation(std::span<const float> x, const ActivationShape& shape,
                          std::span<double> out) const override {
    emulate_half(shape.dtype, x, out);
  }

 private:
  int top() const { return (1 << spec_.bits) - 1; }     // the largest code, 15 or 255
  int middle() const { return 1 << (spec_.bits - 1); }  // the code of 0 without zero points

  std::int64_t groups(const MatrixShape& shape) const {
    return scales_of_row(traits().weight, shape);
  }
  std::vector<std::int32_t> group_of_columns(std::span<const float> w,
                                             const MatrixShape& shape) const;
  Step step_of(const Range& range, Dtype dtype) const;
  int encode(float value, const Step& step) const;

  Place value_place(std::int64_t row, std::int64_t col, std::int64_t cols) const {
    if (spec_.bits == 8) return {static_cast<std::size_t>(row * cols + col), 0};
    return {static_cast<std::size_t>(row * ceil_div(cols, 2) + col / 2), static_cast<int>(col % 2)};
  }
  Place zero_place(std::int64_t row, std::int64_t group, std::int64_t group_count) const {
    if (spec_.bits == 8) return {static_cast<std::size_t>(row * group_count + group), 0};
    return {static_cast<std::size_t>(row / 2 * group_count + group), static_cast<int>(row % 2)};
  }
  int load(std::span<const std::byte> bytes, Place place) const {
    const auto byte = static_cast<std::uint8_t>(bytes[place.byte]);
    return spec_.bits == 8 ? byte : nibble(byte, place.element);
  }
  // Into bytes that were zero.
  void store(std::span<std::byte> bytes, Place place, int code) const {
    const int shift = spec_.bits == 8 ? 0 : 4 * place.element;
    bytes[place.byte] |= static_cast<std::byte>(code << shift);
  }

  WnA16Spec spec_;
};

std::string WnA16::name() const {
  std::string name(spec_.family);
  name += '_';
  name += std::ranges::find(kGroupOptions, spec_.group, &GroupOption::group)->name;
  if (spec_.zero_points) name += "_zp";
  if (spec_.act_order) name += "_actorder";
  return name;
}

SchemeTraits WnA16::traits() const {
  const double highest = middle() - 1;
  return {.weight = {.element = spec_.bits == 4 ? Element::int4 : Element::int8,
                     .scale = ScaleKind::activation_dtype,
                     .unit = {1, spec_.group},
                     .lowest = spec_.zero_points ? -highest - 1 : -highest,
                     .highest = highest,
                     .zero_points = spec_.zero_points,
                     .group_index = spec_.act_order},
          .activation = {}};
}

MatrixBytes WnA16::weight_bytes(const MatrixShape& shape) const {
  const std::int64_t g = groups(shape);
  const auto bytes = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  return {.values = bytes(shape.rows * (spec_.bits == 8 ? shape.cols : ceil_div(shape.cols, 2))),
          .scales = bytes(shape.rows * g) * sizeof(std::uint16_t),
          .zero_points = !spec_.zero_points
                             ? 0
                             : bytes((spec_.bits == 8 ? shape.rows : ceil_div(shape.rows, 2)) * g),
          .group_index = spec_.act_order ? bytes(shape.cols) * sizeof(std::int32_t) : 0};
}

// Runs of columns, or for act_order runs of columns sorted by falling sum of squares, ties to the
// lower column: GPTQ (Frantar et al. 2022) sorts by the activations' second moments, which are not
// known here, and it is the scattering that kernels have to get right. Under tensor parallelism the
// columns of other ranks are not known either: every group of the whole gets an equal share of
// these.
std::vector<std::int32_t> WnA16::group_of_columns(std::span<const float> w,
                                                  const MatrixShape& shape) const {
  const auto cols = static_cast<std::size_t>(shape.cols);
  std::vector<std::size_t> order(cols);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (spec_.act_order) {
    std::vector<double> energy(cols);
    for (std::size_t i = 0; i < w.size(); ++i) {
      if (std::isfinite(w[i])) energy[i % cols] += static_cast<double>(w[i]) * w[i];
    }
    std::ranges::stable_sort(order, std::greater<>{}, [&](std::size_t col) { return energy[col]; });
  }
  const bool cut = spec_.act_order && shape.whole_cols > shape.cols;
  const std::int64_t run = spec_.group == 0 ? shape.cols : spec_.group;
  std::vector<std::int32_t> group_of(cols);
  for (std::int64_t i = 0; i < shape.cols; ++i) {
    const std::int64_t group = cut ? i * groups(shape) / shape.cols : i / run;
    group_of[order[static_cast<std::size_t>(i)]] = static_cast<std::int32_t>(group);
  }
  return group_of;
}

Step WnA16::step_of(const Range& range, Dtype dtype) const {
  const float exact = spec_.zero_points
                          ? (range.high - range.low) / static_cast<float>(top())
                          : std::max(range.high, -range.low) / static_cast<float>(middle() - 1);
  // The least positive fp16 number; bf16 reaches below the floor of amax.
  const float floor = dtype == Dtype::fp16 ? 0x1p-24f : kAmaxFloor / static_cast<float>(top());
  const float scale = round_to(dtype, std::max(exact, floor));
  if (!spec_.zero_points) return {middle(), scale};
  const float zero = round_to_integer(-range.low / scale);
  return {std::clamp(static_cast<int>(zero), 0, top()), scale};
}

int WnA16::encode(float value, const Step& step) const {
  if (std::isnan(value)) return step.zero;  // integers have no NaN
  const float limit = static_cast<float>(2 * top());
  const float steps = round_to_integer(std::clamp(value / step.scale, -limit, limit));
  return std::clamp(static_cast<int>(steps) + step.zero, 0, top());
}

void WnA16::quantize_weight(std::span<const float> w, const Matrix& out) const {
  const std::int64_t rows = out.shape.rows, cols = out.shape.cols;
  const Dtype dtype = out.shape.dtype;
  const std::int64_t group_count = groups(out.shape);
  const auto group_of = group_of_columns(w, out.shape);
  if (spec_.act_order) std::ranges::copy(group_of, as<std::int32_t>(out.group_index).begin());
  std::ranges::fill(out.values, std::byte{0});
  std::ranges::fill(out.zero_points, std::byte{0});
  const auto scales = as<std::uint16_t>(out.scales);
  std::vector<Range> ranges;
  std::vector<Step> steps(static_cast<std::size_t>(group_count));
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto row_w =
        w.subspan(static_cast<std::size_t>(row * cols), static_cast<std::size_t>(cols));
    ranges.assign(static_cast<std::size_t>(group_count), {});
    for (std::size_t c = 0; c < row_w.size(); ++c) {
      ranges[static_cast<std::size_t>(group_of[c])].add(row_w[c]);
    }
    for (std::int64_t g = 0; g < group_count; ++g) {
      const Step step = step_of(ranges[static_cast<std::size_t>(g)], dtype);
      steps[static_cast<std::size_t>(g)] = step;
      scales[static_cast<std::size_t>(row * group_count + g)] = to_bits(dtype, step.scale);
      if (spec_.zero_points) store(out.zero_points, zero_place(row, g, group_count), step.zero);
    }
    for (std::int64_t c = 0; c < cols; ++c) {
      const auto i = static_cast<std::size_t>(c);
      store(out.values, value_place(row, c, cols),
            encode(row_w[i], steps[static_cast<std::size_t>(group_of[i])]));
    }
  }
}

void WnA16::dequantize_weight(const ConstMatrix& w, std::int64_t begin, std::int64_t end,
                              std::span<double> out) const {
  const std::int64_t cols = w.shape.cols;
  const auto scales = as<std::uint16_t>(w.scales);
  const auto group_index = as<std::int32_t>(w.group_index);
  // From the storage, so that also a shape that does not know the whole may be read.
  const std::int64_t group_count =
      w.shape.rows == 0 ? 0 : static_cast<std::int64_t>(scales.size()) / w.shape.rows;
  const std::int64_t group = spec_.group == 0 ? cols : spec_.group;
  std::vector<Step> steps(static_cast<std::size_t>(group_count));
  for (std::int64_t row = begin; row < end; ++row) {
    for (std::int64_t g = 0; g < group_count; ++g) {
      steps[static_cast<std::size_t>(g)] = {
          spec_.zero_points ? load(w.zero_points, zero_place(row, g, group_count)) : middle(),
          to_float(w.shape.dtype, scales[static_cast<std::size_t>(row * group_count + g)])};
    }
    double* const row_out = out.data() + (row - begin) * cols;
    for (std::int64_t c = 0; c < cols; ++c) {
      const std::int64_t g = spec_.act_order ? group_index[static_cast<std::size_t>(c)] : c / group;
      const Step& step = steps[static_cast<std::size_t>(g)];
      const int code = load(w.values, value_place(row, c, cols));
      row_out[c] = (code - step.zero) * static_cast<double>(step.scale);
    }
  }
}

}  // namespace

std::unique_ptr<const Scheme> make_wna16(WnA16Spec spec, SchemeOptions& options) {
  // Of two group options the second is left over, and the name is refused.
  const auto given = std::ranges::find_if(
      kGroupOptions, [&](const GroupOption& option) { return options.take(option.name); });
  if (given != std::end(kGroupOptions)) spec.group = given->group;
  spec.zero_points = options.take("zp");
  spec.act_order = options.take("actorder");
  // With one group there is no order for columns to have.
  if (spec.act_order && spec.group == 0) return nullptr;
  return std::make_unique<WnA16>(spec);
}

}  // namespace moegauge
