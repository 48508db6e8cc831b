#include "reference/schemes/byte_scheme.h"

#include "reference/base/clones.h"
#include "reference/formats/e8m0.h"
#include "reference/formats/fp8.h"
#include "reference/formats/int8.h"
#include "reference/schemes/units.h"

namespace moegauge {
namespace {

constexpr std::array<float, 256> kInt8Values = [] {
  std::array<float, 256> values{};
  for (std::size_t i = 0; i < 256; ++i) values[i] = static_cast<float>(static_cast<std::int8_t>(i));
  return values;
}();

const std::array<float, 256>& values_of(Element element) {
  switch (element) {
    case Element::e4m3fnuz:
      return kE4m3fnuzValues;
    case Element::int8:
      return kInt8Values;
    default:
      return kE4m3fnValues;
  }
}

MOEGAUGE_CLONES void encode_e4m3fn(const float* __restrict x, std::size_t n, float scale,
                                   std::uint8_t* __restrict codes) {
  for (std::size_t i = 0; i < n; ++i) codes[i] = float_to_e4m3fn(x[i] / scale);
}
MOEGAUGE_CLONES void encode_e4m3fnuz(const float* __restrict x, std::size_t n, float scale,
                                     float maximum, std::uint8_t* __restrict codes) {
  for (std::size_t i = 0; i < n; ++i) codes[i] = float_to_e4m3fnuz(x[i] / scale, maximum);
}

float read_scale(std::span<const std::byte> scales, ScaleKind kind, std::size_t index) {
  return kind == ScaleKind::e8m0 ? e8m0_to_float(as<std::uint8_t>(scales)[index])
                                 : as<float>(scales)[index];
}

void write_scale(std::span<std::byte> scales, ScaleKind kind, std::size_t index, float scale) {
  if (kind == ScaleKind::e8m0) {
    as<std::uint8_t>(scales)[index] = e8m0_ceil(scale, 1.0f);  // exact for powers of two
  } else {
    as<float>(scales)[index] = scale;
  }
}

}  // namespace

ByteElement take_fp8_flavour(SchemeOptions& options) {
  if (options.take("fnuz")) return {Element::e4m3fnuz, kE4m3fnuzMax, kE4m3fnuzMax};
  if (options.take("fnuz224")) return {Element::e4m3fnuz, kE4m3fnuzMax, kE4m3fnuzReducedMax};
  return {Element::e4m3fn, kE4m3fnMax, kE4m3fnMax};
}

std::string flavour_suffix(const ByteElement& element) {
  if (element.element != Element::e4m3fnuz) return "";
  return element.activation_max == kE4m3fnuzMax ? "_fnuz" : "_fnuz224";
}

float scale_of(const ScaleRule& rule, float amax, float maximum) {
  switch (rule.kind) {
    case ScaleRule::Kind::linear:
      return std::max(std::max(amax, rule.amax_floor) / maximum, rule.scale_floor);
    case ScaleRule::Kind::power_of_two_ceil:
      return e8m0_to_float(e8m0_ceil(amax, maximum));
    case ScaleRule::Kind::power_of_two_floor:
      return e8m0_to_float(e8m0_floor(amax, 0));
  }
  return 1.0f;
}

ByteScheme::ByteScheme(ByteSchemeSpec spec)
    : spec_(std::move(spec)), values_(&values_of(spec_.element.element)) {}

std::string ByteScheme::config_scheme() const {
  return spec_.name.substr(0, spec_.name.size() - flavour_suffix(spec_.element).size());
}

SchemeTraits ByteScheme::traits() const {
  const auto operand = [this](const ScaleUnit& unit, float maximum) {
    return OperandTraits{.element = spec_.element.element,
                         .scale = spec_.scale_kind,
                         .unit = unit,
                         .lowest = -maximum,
                         .highest = maximum};
  };
  SchemeTraits traits = {
      .weight = operand(spec_.weight_unit, spec_.element.weight_max),
      .activation = operand(spec_.activation_unit, spec_.element.activation_max)};
  traits.activation.static_scale = spec_.static_activation_scale;
  traits.activation.rule = spec_.activation_rule;
  return traits;
}

ErrorLimits ByteScheme::error_limits(Dtype /*dtype*/, bool reduced_accumulation) const {
  if (reduced_accumulation) return {.relative_l2 = 0.039, .worst_token = 0.065};
  return spec_.limits;
}

MatrixBytes ByteScheme::weight_bytes(const MatrixShape& shape) const {
  const UnitGrid grid(shape.rows, shape.cols, spec_.weight_unit);
  const std::size_t scale_bytes = spec_.scale_kind == ScaleKind::e8m0 ? 1 : sizeof(float);
  return {.values = static_cast<std::size_t>(shape.rows * shape.cols),
          .scales = grid.count() * scale_bytes};
}

void ByteScheme::encode(std::span<const float> x, float scale, float maximum,
                        std::span<std::uint8_t> codes) const {
  switch (spec_.element.element) {
    case Element::e4m3fnuz:
      return encode_e4m3fnuz(x.data(), x.size(), scale, maximum, codes.data());
    case Element::int8:
      for (std::size_t i = 0; i < x.size(); ++i) {
        codes[i] = static_cast<std::uint8_t>(float_to_int8(x[i] / scale));
      }
      return;
    default:
      return encode_e4m3fn(x.data(), x.size(), scale, codes.data());
  }
}

void ByteScheme::quantize_weight(std::span<const float> w, const Matrix& out) const {
  const UnitGrid grid(out.shape.rows, out.shape.cols, spec_.weight_unit);
  const auto codes = as<std::uint8_t>(out.values);
  const float maximum = spec_.element.weight_max;
  for_each_unit(grid, [&](std::size_t index, const Rectangle& r) {
    const float scale = scale_of(spec_.weight_rule, finite_amax(w, grid, r), maximum);
    write_scale(out.scales, spec_.scale_kind, index, scale);
    const auto width = static_cast<std::size_t>(r.col_end - r.col);
    for (std::int64_t row = r.row; row < r.row_end; ++row) {
      const auto begin = static_cast<std::size_t>(row * grid.cols + r.col);
      encode(w.subspan(begin, width), scale, maximum, codes.subspan(begin, width));
    }
  });
}

void ByteScheme::dequantize_weight(const ConstMatrix& w, std::int64_t begin, std::int64_t end,
                                   std::span<double> out) const {
  const UnitGrid grid(w.shape.rows, w.shape.cols, spec_.weight_unit);
  const auto codes = as<std::uint8_t>(w.values);
  for (std::int64_t row = begin; row < end; ++row) {
    const auto first_scale = static_cast<std::size_t>(row / grid.unit.rows * grid.across());
    const std::uint8_t* const row_codes = codes.data() + row * grid.cols;
    double* const row_out = out.data() + (row - begin) * grid.cols;
    for (std::int64_t block = 0; block < grid.across(); ++block) {
      const double scale =
          read_scale(w.scales, spec_.scale_kind, first_scale + static_cast<std::size_t>(block));
      const std::int64_t last = std::min((block + 1) * grid.unit.cols, grid.cols);
      for (std::int64_t col = block * grid.unit.cols; col < last; ++col) {
        row_out[col] = decode(row_codes[col]) * scale;
      }
    }
  }
}

void ByteScheme::emulate_activation(std::span<const float> x, const ActivationShape& shape,
                                    std::span<double> out) const {
  const UnitGrid grid(shape.rows, shape.cols, spec_.activation_unit);
  const float maximum = spec_.element.activation_max;
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(std::min(grid.unit.cols, grid.cols)));
  for_each_unit(grid, [&](std::size_t, const Rectangle& r) {
    const float scale = spec_.static_activation_scale
                            ? shape.static_scale
                            : scale_of(spec_.activation_rule, finite_amax(x, grid, r), maximum);
    const auto width = static_cast<std::size_t>(r.col_end - r.col);
    for (std::int64_t row = r.row; row < r.row_end; ++row) {
      const auto begin = static_cast<std::size_t>(row * grid.cols + r.col);
      encode(x.subspan(begin, width), scale, maximum, codes);
      for (std::size_t i = 0; i < width; ++i) {
        out[begin + i] = decode(codes[i]) * static_cast<double>(scale);
      }
    }
  });
}

}  // namespace moegauge
