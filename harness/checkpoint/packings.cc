#include "harness/checkpoint/packings.h"

#include <algorithm>

#include "reference/base/integers.h"
#include "reference/formats/bf16.h"
#include "reference/formats/e8m0.h"
#include "reference/formats/fp16.h"
#include "reference/formats/int4.h"

namespace moegauge {
namespace {

constexpr int kWordBits = 32;
constexpr std::int64_t kMxGroup = 32;

// With room for codes, and for scales of `units` units per row.
Unpacked make_unpacked(const Extent& extent, std::int64_t unit_cols, std::int64_t units) {
  Unpacked out;
  out.rows = extent.end - extent.begin;
  out.cols = extent.cols;
  if (extent.codes) out.codes.resize(index(out.rows * out.cols));
  out.unit_cols = unit_cols;
  out.units = units;
  out.scales.resize(index(out.rows * units));
  return out;
}

std::int64_t units_of(std::int64_t cols, std::int64_t unit_cols) {
  return unit_cols == 0 ? 1 : ceil_div(cols, unit_cols);
}

// Element `i` of a run that is packed with the lowest bits first, words `stride` apart.
std::uint8_t field(const SlabBytes& words, std::int64_t first, std::int64_t i, std::int64_t stride,
                   int bits) {
  const std::int64_t per_word = kWordBits / bits;
  const auto word = words.at<std::uint32_t>(first + i / per_word * stride);
  const auto shift = static_cast<unsigned>((i % per_word) * bits);
  return static_cast<std::uint8_t>(word >> shift & ((1u << bits) - 1));
}

// Scattered columns keep every group of the whole matrix, whatever columns were cut off.
void take_group_index(Unpacked& out, const Slab& slab) {
  if (slab.file == nullptr) return;
  const SlabBytes bytes(slab);
  out.group_of.resize(index(out.cols));
  for (std::int64_t col = 0; col < out.cols; ++col) {
    out.group_of[index(col)] = bytes.at<std::int32_t>(col);
  }
}

}  // namespace

float SlabBytes::real(std::int64_t i) const {
  if (dtype_ == TensorDtype::f32) return at<float>(i);
  const auto bits = at<std::uint16_t>(i);
  return dtype_ == TensorDtype::bf16 ? bf16_to_float(bits) : fp16_to_float(bits);
}

Unpacked read_plain(const Slab& weight, bool transposed, const Extent& extent) {
  const SlabBytes bytes(weight);
  Unpacked out;
  out.rows = extent.end - extent.begin;
  out.cols = extent.cols;
  out.values.resize(index(out.rows * out.cols));
  const std::int64_t width = weight.shape[1];
  for (std::int64_t row = 0; row < out.rows; ++row) {
    const std::int64_t r = extent.begin + row;
    for (std::int64_t col = 0; col < out.cols; ++col) {
      out.values[index(row * out.cols + col)] =
          bytes.real(transposed ? col * width + r : r * width + col);
    }
  }
  return out;
}

Unpacked read_bytes(const Slab& weight, const Slab& scale, const ScaleUnit& unit,
                    const Extent& extent) {
  const SlabBytes bytes(weight), scales(scale);
  Unpacked out = make_unpacked(extent, unit.cols, units_of(extent.cols, unit.cols));
  const std::int64_t width = weight.shape[1], across = units_of(width, unit.cols);
  for (std::int64_t row = 0; row < out.rows; ++row) {
    const std::int64_t r = extent.begin + row;
    for (std::int64_t col = 0; col < out.cols; ++col) {
      out.codes[index(row * out.cols + col)] = bytes.at<std::uint8_t>(r * width + col);
    }
    const std::int64_t down = unit.rows == 0 ? 0 : r / unit.rows;
    for (std::int64_t u = 0; u < out.units; ++u) {
      out.scales[index(row * out.units + u)] = scales.real(down * across + u);
    }
  }
  return out;
}

Unpacked read_compressed(const CompressedSlabs& slabs, const Groups& groups, const Extent& extent) {
  const SlabBytes words(slabs.weight), scales(slabs.scale);
  const std::int64_t per_word = kWordBits / groups.bits;
  const std::int64_t words_per_row = slabs.weight.shape[1];
  const std::int64_t whole_groups = slabs.scale.shape[1];
  const bool scattered = slabs.group_index.file != nullptr;
  Unpacked out = make_unpacked(extent, groups.group,
                               scattered ? whole_groups : units_of(extent.cols, groups.group));
  for (std::int64_t row = 0; row < out.rows; ++row) {
    const std::int64_t r = extent.begin + row;
    for (std::int64_t col = 0; col < out.cols; ++col) {
      out.codes[index(row * out.cols + col)] = field(words, r * words_per_row, col, 1, groups.bits);
    }
    for (std::int64_t g = 0; g < out.units; ++g) {
      out.scales[index(row * out.units + g)] = scales.real(r * whole_groups + g);
    }
  }
  if (slabs.zero_point.file != nullptr) {
    const SlabBytes zeros(slabs.zero_point);
    out.zeros.resize(out.scales.size());
    for (std::int64_t row = 0; row < out.rows; ++row) {
      const std::int64_t r = extent.begin + row;
      for (std::int64_t g = 0; g < out.units; ++g) {
        out.zeros[index(row * out.units + g)] =
            field(zeros, r / per_word * whole_groups + g, r % per_word, 1, groups.bits);
      }
    }
  }
  take_group_index(out, slabs.group_index);
  return out;
}

Unpacked read_gptq(const GptqSlabs& slabs, const Groups& groups, const Extent& extent) {
  const SlabBytes words(slabs.weight), zeros(slabs.zeros), scales(slabs.scale);
  const std::int64_t rows = slabs.scale.shape[1], whole_groups = slabs.scale.shape[0];
  const std::int64_t zero_words = slabs.zeros.shape[1];
  const bool scattered = slabs.group_index.file != nullptr;
  Unpacked out = make_unpacked(extent, groups.group,
                               scattered ? whole_groups : units_of(extent.cols, groups.group));
  out.zeros.resize(out.scales.size());
  const int added = slabs.zeros_less_one ? 1 : 0, mask = (1 << groups.bits) - 1;
  for (std::int64_t row = 0; row < out.rows; ++row) {
    const std::int64_t r = extent.begin + row;
    for (std::int64_t col = 0; extent.codes && col < out.cols; ++col) {
      out.codes[index(row * out.cols + col)] = field(words, r, col, rows, groups.bits);
    }
    for (std::int64_t g = 0; g < out.units; ++g) {
      const std::size_t at = index(row * out.units + g);
      out.scales[at] = scales.real(g * rows + r);
      const int stored = field(zeros, g * zero_words, r, 1, groups.bits);
      out.zeros[at] = static_cast<std::uint8_t>((stored + added) & mask);
    }
  }
  take_group_index(out, slabs.group_index);
  return out;
}

Unpacked read_awq(const AwqSlabs& slabs, const Groups& groups, const Extent& extent) {
  constexpr std::int64_t kPerWord = 8;
  const SlabBytes words(slabs.weight), zeros(slabs.zeros), scales(slabs.scale);
  const std::int64_t rows = slabs.scale.shape[1], words_per_line = slabs.weight.shape[1];
  Unpacked out = make_unpacked(extent, groups.group, units_of(extent.cols, groups.group));
  out.zeros.resize(out.scales.size());
  const auto code = [&](const SlabBytes& from, std::int64_t line, std::int64_t row) {
    const auto word = from.at<std::uint32_t>(line * words_per_line + row / kPerWord);
    return static_cast<std::uint8_t>(awq_nibble(word, static_cast<int>(row % kPerWord)));
  };
  for (std::int64_t row = 0; row < out.rows; ++row) {
    const std::int64_t r = extent.begin + row;
    for (std::int64_t col = 0; extent.codes && col < out.cols; ++col) {
      out.codes[index(row * out.cols + col)] = code(words, col, r);
    }
    for (std::int64_t g = 0; g < out.units; ++g) {
      out.scales[index(row * out.units + g)] = scales.real(g * rows + r);
      out.zeros[index(row * out.units + g)] = code(zeros, g, r);
    }
  }
  return out;
}

Unpacked read_mxfp4(const Slab& blocks, const Slab& scales, const Extent& extent) {
  const SlabBytes bytes(blocks), codes(scales);
  Unpacked out = make_unpacked(extent, kMxGroup, ceil_div(extent.cols, kMxGroup));
  const std::int64_t groups = scales.shape[1];
  for (std::int64_t row = 0; row < out.rows; ++row) {
    const std::int64_t r = extent.begin + row;
    for (std::int64_t col = 0; col < out.cols; ++col) {
      const auto pair = bytes.at<std::uint8_t>(r * groups * kMxGroup / 2 + col / 2);
      out.codes[index(row * out.cols + col)] =
          static_cast<std::uint8_t>(nibble(pair, static_cast<int>(col % 2)));
    }
    for (std::int64_t u = 0; u < out.units; ++u) {
      out.scales[index(row * out.units + u)] =
          e8m0_to_float(codes.at<std::uint8_t>(r * groups + u));
    }
  }
  return out;
}

}  // namespace moegauge
