#include "kernels/cuda/int_packing.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/cuda/tile_rows.h"
#include "kernels/nvidia/device/int_layout.h"
#include "reference/formats/bf16.h"
#include "reference/formats/e8m0.h"

namespace moegauge::cuda {
namespace {

std::uint8_t byte_at(std::span<const std::byte> bytes, std::int64_t i) {
  return static_cast<std::uint8_t>(bytes[static_cast<std::size_t>(i)]);
}

// One matrix in canonical storage (reference/schemes/wna16.h), by packed row and column.
class Source {
 public:
  Source(const IntFormat& format, const ConstMatrix& from, const PackingOrder& order)
      : format_(format),
        from_(from),
        order_(order),
        groups_(format.per_channel ? 1 : ceil_div(from.shape.cols, format.group)),
        row_bytes_(format.bits == 4 ? ceil_div(from.shape.cols, 2) : from.shape.cols) {}

  // The canonical row of a row of a tile; -1 outside the matrix.
  std::int64_t row(std::int64_t tile, std::int64_t in_tile) const {
    std::int64_t row = part_row(from_.shape, tile, in_tile);
    if (row >= 0 && !order_.rows.empty()) row = order_.rows[static_cast<std::size_t>(row)];
    return canonical_row(from_.shape, row, is_up(from_.shape, in_tile));
  }
  // What stands outside the matrix is a weight of zero.
  std::uint8_t code(std::int64_t row, std::int64_t place) const {
    if (row < 0 || place >= from_.shape.cols) return zero_point(row, place / format_.group);
    const std::int64_t column =
        order_.columns.empty() ? place : order_.columns[static_cast<std::size_t>(place)];
    if (format_.bits == 8) return byte_at(from_.values, row * row_bytes_ + column);
    return nibble(byte_at(from_.values, row * row_bytes_ + column / 2), column);
  }
  std::uint8_t zero_point(std::int64_t row, std::int64_t group) const {
    if (format_.per_channel) group = 0;
    if (format_.e2m1) return 0;
    if (!format_.zero_points || row < 0 || group >= groups_)
      return static_cast<std::uint8_t>(1 << (format_.bits - 1));
    if (format_.bits == 8) return byte_at(from_.zero_points, row * groups_ + group);
    return nibble(byte_at(from_.zero_points, row / 2 * groups_ + group), row);
  }
  std::uint16_t scale(std::int64_t row, std::int64_t group) const {
    if (format_.per_channel && group < ceil_div(from_.shape.cols, format_.group)) group = 0;
    if (row < 0 || group >= groups_) return 0;
    if (format_.e2m1)
      return float_to_bf16(e8m0_to_float(byte_at(from_.scales, row * groups_ + group)));
    std::uint16_t bits = 0;
    std::memcpy(&bits, from_.scales.data() + (row * groups_ + group) * 2, sizeof bits);
    return bits;
  }

 private:
  static std::uint8_t nibble(std::uint8_t byte, std::int64_t element) {
    return element % 2 == 0 ? byte & 0x0f : byte >> 4;
  }

  const IntFormat& format_;
  const ConstMatrix& from_;
  const PackingOrder& order_;
  std::int64_t groups_, row_bytes_;
};

void pack_chunk(const IntFormat& format, const Source& source, std::int64_t tile, std::int64_t step,
                std::byte* to) {
  std::int64_t rows[moe::kIntRows];
  for (int r = 0; r < moe::kIntRows; ++r) rows[r] = source.row(tile, r);
  const int code_bytes = moe::int_code_bytes(format.bits);
  for (int word = 0; word < code_bytes / 4; ++word) {
    std::uint32_t codes = 0;
    for (int slot = 0; slot < 32 / format.bits; ++slot) {
      const moe::IntElement at = moe::int_element(format.bits, word, slot);
      const std::uint32_t code = source.code(rows[at.row], step * moe::kIntStep + at.column);
      codes |= code << (slot * format.bits);
    }
    std::memcpy(to + word * 4, &codes, sizeof codes);
  }
  const std::int64_t groups = moe::kIntStep / format.group;
  std::byte* scales = to + code_bytes;
  std::byte* zeros = scales + groups * moe::kIntRows * 2;
  for (std::int64_t g = 0; g < groups; ++g) {
    for (int r = 0; r < moe::kIntRows; ++r) {
      const std::int64_t place = g * moe::kIntRows + moe::int_scale_place(r);
      const std::uint16_t scale = source.scale(rows[r], step * groups + g);
      std::memcpy(scales + place * 2, &scale, sizeof scale);
      if (format.zero_points)
        zeros[place] = static_cast<std::byte>(source.zero_point(rows[r], step * groups + g));
    }
  }
}

}  // namespace

std::size_t chunk_bytes(const IntFormat& format) {
  return static_cast<std::size_t>(
      moe::int_chunk_bytes(format.bits, static_cast<int>(format.group), format.zero_points));
}

std::size_t packed_bytes(const IntFormat& format, const MatrixShape& shape) {
  return static_cast<std::size_t>(tile_count(shape) * ceil_div(shape.cols, moe::kIntStep)) *
         chunk_bytes(format);
}

Expected<std::vector<std::int32_t>, std::string> column_order(
    const IntFormat& format, std::span<const std::int32_t> group_of) {
  std::vector<std::int32_t> order(group_of.size());
  std::iota(order.begin(), order.end(), 0);
  const auto group = [&](std::int32_t column) {
    return group_of[static_cast<std::size_t>(column)];
  };
  std::ranges::stable_sort(order, {}, group);
  for (std::size_t place = 0; place < order.size(); ++place) {
    const auto expected = static_cast<std::int64_t>(place) / format.group;
    if (group(order[place]) == expected) continue;
    return Unexpected{
        "group_index puts other than " + std::to_string(format.group) + " columns into group " +
        std::to_string(expected) + " of " +
        std::to_string(ceil_div(static_cast<std::int64_t>(order.size()), format.group)) +
        "; the cuda kernels need all groups full but the last"};
  }
  return order;
}

void pack_integers(const IntFormat& format, const ConstMatrix& from, const PackingOrder& order,
                   std::span<std::byte> to) {
  const Source source(format, from, order);
  const std::int64_t steps = ceil_div(from.shape.cols, moe::kIntStep);
  std::byte* chunk = to.data();
  for (std::int64_t tile = 0; tile < tile_count(from.shape); ++tile) {
    for (std::int64_t step = 0; step < steps; ++step, chunk += chunk_bytes(format))
      pack_chunk(format, source, tile, step, chunk);
  }
}

}  // namespace moegauge::cuda
