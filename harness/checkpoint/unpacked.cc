#include "harness/checkpoint/unpacked.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "reference/base/integers.h"
#include "reference/dtype.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e8m0.h"
#include "reference/formats/fp8.h"
#include "reference/formats/int4.h"

namespace moegauge {
namespace {

// What a code stands for before its scale; integers of a group count from their zero point.
float element_value(const OperandTraits& weight, std::uint8_t code, int zero) {
  switch (weight.element) {
    case Element::e4m3fn:
      return kE4m3fnValues[code];
    case Element::e4m3fnuz:
      return kE4m3fnuzValues[code];
    case Element::e2m1:
      return e2m1_to_float(code);
    case Element::int8:
      if (weight.scale == ScaleKind::fp32) return static_cast<std::int8_t>(code);
      break;
    case Element::int4:
    case Element::activation_dtype:
      break;
  }
  return static_cast<float>(code - zero);
}

int middle(const OperandTraits& weight) { return weight.element == Element::int4 ? 8 : 128; }

int zero_of(const Unpacked& m, const OperandTraits& weight, std::int64_t row, std::int64_t unit) {
  return m.zeros.empty() ? middle(weight) : m.zeros[index(row * m.units + unit)];
}

// As fp8_tensor's requantisation: the value in fp32, divided by the new scale in fp32.
void rescale_row(Unpacked& m, Element element, std::int64_t row, std::int64_t unit, float scale) {
  const float own = m.scale(row, unit);
  if (own == scale) return;
  const bool fnuz = element == Element::e4m3fnuz;
  const std::int64_t width = m.unit_cols == 0 ? m.cols : m.unit_cols;
  const std::int64_t end = std::min(m.cols, (unit + 1) * width);
  for (std::int64_t col = unit * width; col < end; ++col) {
    std::uint8_t& code = m.codes[index(row * m.cols + col)];
    const float value = (fnuz ? kE4m3fnuzValues : kE4m3fnValues)[code] * own / scale;
    code = fnuz ? float_to_e4m3fnuz(value, kE4m3fnuzMax) : float_to_e4m3fn(value);
  }
  m.scales[index(row * m.units + unit)] = scale;
}

// Gives all rows of a unit of the scheme one scale.
void merge_scales(Unpacked& m, const OperandTraits& weight) {
  const std::int64_t height = weight.unit.rows == 0 ? m.rows : weight.unit.rows;
  for (std::int64_t begin = 0; begin < m.rows; begin += height) {
    const std::int64_t end = std::min(begin + height, m.rows);
    for (std::int64_t unit = 0; unit < m.units; ++unit) {
      float largest = 0;
      for (std::int64_t r = begin; r < end; ++r) largest = std::max(largest, m.scale(r, unit));
      for (std::int64_t r = begin; r < end; ++r) rescale_row(m, weight.element, r, unit, largest);
    }
  }
}

// Codes [rows, cols], two to a byte along the columns where elements have four bits.
void store_codes(const Unpacked& m, bool packed, std::span<std::byte> out) {
  if (!packed) {
    std::memcpy(out.data(), m.codes.data(), out.size());
    return;
  }
  std::size_t next = 0;
  for (std::int64_t row = 0; row < m.rows; ++row) {
    const std::uint8_t* const codes = &m.codes[index(row * m.cols)];
    for (std::int64_t col = 0; col < m.cols; col += 2) {
      const int second = col + 1 < m.cols ? codes[col + 1] : 0;
      out[next++] = std::byte{pack_nibbles(codes[col], second)};
    }
  }
}

template <typename T>
void put(std::span<std::byte> out, std::size_t at, T value) {
  std::memcpy(out.data() + at * sizeof(T), &value, sizeof(T));
}

void store_scales(const Unpacked& m, const OperandTraits& weight, Dtype dtype,
                  std::span<std::byte> out) {
  const std::int64_t height = weight.unit.rows == 0 ? m.rows : weight.unit.rows;
  std::size_t next = 0;
  for (std::int64_t row = 0; row < m.rows; row += height) {
    for (std::int64_t unit = 0; unit < m.units; ++unit, ++next) {
      const float scale = m.scale(row, unit);
      switch (weight.scale) {
        case ScaleKind::fp32:
          put(out, next, scale);
          break;
        case ScaleKind::e8m0:
          put(out, next, e8m0_ceil(scale, 1.0f));  // exact for powers of two; NaN stays
          break;
        case ScaleKind::activation_dtype:
          put(out, next, to_bits(dtype, scale));
          break;
        case ScaleKind::none:
          break;
      }
    }
  }
}

// Zero points [rows, units], two to a byte along the rows where elements have four bits.
void store_zeros(const Unpacked& m, bool packed, std::span<std::byte> out) {
  std::ranges::fill(out, std::byte{0});
  for (std::int64_t row = 0; row < m.rows; ++row) {
    for (std::int64_t unit = 0; unit < m.units; ++unit) {
      const std::uint8_t zero = m.zeros[index(row * m.units + unit)];
      const int shift = packed ? 4 * static_cast<int>(row % 2) : 0;
      out[index((packed ? row / 2 : row) * m.units + unit)] |=
          static_cast<std::byte>(zero << shift);
    }
  }
}

}  // namespace

void append(Unpacked& to, const Unpacked& from) {
  if (to.rows == 0) {
    to = from;
    return;
  }
  const auto join = [](auto& all, const auto& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  to.rows += from.rows;
  join(to.values, from.values);
  join(to.codes, from.codes);
  join(to.scales, from.scales);
  join(to.zeros, from.zeros);
}

std::vector<float> dequantize(const Unpacked& m, const OperandTraits& weight) {
  if (m.plain()) return m.values;
  std::vector<float> values(m.codes.size());
  for (std::int64_t row = 0; row < m.rows; ++row) {
    for (std::int64_t col = 0; col < m.cols; ++col) {
      const std::int64_t unit = m.unit_of(col);
      const std::size_t at = index(row * m.cols + col);
      values[at] =
          element_value(weight, m.codes[at], zero_of(m, weight, row, unit)) * m.scale(row, unit);
    }
  }
  return values;
}

void store_canonical(const Unpacked& matrix, const Scheme& scheme, const Matrix& out) {
  if (matrix.plain()) return scheme.quantize_weight(matrix.values, out);
  const OperandTraits weight = scheme.traits().weight;
  const bool packed = weight.element == Element::int4 || weight.element == Element::e2m1;
  Unpacked merged;
  const Unpacked* from = &matrix;
  if (weight.unit.rows != 1) {
    merged = matrix;
    merge_scales(merged, weight);
    from = &merged;
  }
  store_codes(*from, packed, out.values);
  store_scales(*from, weight, out.shape.dtype, out.scales);
  if (weight.zero_points) store_zeros(*from, packed, out.zero_points);
  if (weight.group_index) {
    std::memcpy(out.group_index.data(), from->group_of.data(), out.group_index.size());
  }
}

}  // namespace moegauge
