#include "kernels/cuda/box_packing.h"

#include <algorithm>
#include <cstring>

#include "kernels/cuda/tile_rows.h"
#include "kernels/nvidia/device/int_layout.h"

namespace moegauge::cuda {
namespace {

constexpr std::int64_t block_extent = 128;  // of a scale's block, both ways

std::int64_t steps(std::int64_t row_bytes) { return ceil_div(row_bytes, moe::kStepBytes); }

float scale_at(std::span<const std::byte> scales, std::int64_t index) {
  float scale = 0;
  std::memcpy(&scale, scales.data() + index * std::int64_t{sizeof scale}, sizeof scale);
  return scale;
}

// `bytes` of one row and step, as far as the matrix goes, into their places.
void pack_row(const std::byte* from, std::int64_t bytes, int row, std::byte* chunk) {
  for (int piece = 0; piece * moe::kPieceBytes < bytes; ++piece) {
    const std::int64_t first = piece * moe::kPieceBytes;
    const auto some = static_cast<std::size_t>(std::min<std::int64_t>(bytes - first, 16));
    std::memcpy(chunk + moe::piece_place(row, piece), from + first, some);
  }
}

constexpr std::byte mx_one{127}, mx_nan{255}, e4m3_nan{0x7f};

// The scales of one row's units in a step, into their word of the chunk. The device's scale has no
// NaN: a unit's elements hold it instead.
void pack_units(const ConstMatrix& from, std::int64_t row, std::int64_t step, int in_tile,
                std::byte* chunk) {
  const std::int64_t across = ceil_div(from.shape.cols, moe::kMxUnit);
  std::byte* word = chunk + moe::kChunkBytes + std::int64_t{moe::int_scale_place(in_tile)} * 4;
  for (int unit = 0; unit < 4; ++unit) {
    const std::int64_t column = step * 4 + unit;
    const std::byte scale = row < 0 || column >= across
                                ? mx_one
                                : from.scales[static_cast<std::size_t>(row * across + column)];
    word[unit] = scale == mx_nan ? mx_one : scale;
    if (scale != mx_nan) continue;
    for (const int piece : {2 * unit, 2 * unit + 1})
      std::fill_n(chunk + moe::piece_place(in_tile, piece), moe::kPieceBytes, e4m3_nan);
  }
}

void pack_blocks(const ConstMatrix& from, std::span<float> to) {
  const std::int64_t across = ceil_div(from.shape.cols, block_extent);
  std::size_t at = 0;
  for (std::int64_t tile = 0; tile < tile_count(from.shape); ++tile) {
    for (std::int64_t in_tile = 0; in_tile < tile_rows; in_tile += scale_rows(from.shape)) {
      const std::int64_t row = canonical_row(from.shape, part_row(from.shape, tile, in_tile),
                                             is_up(from.shape, in_tile));
      for (std::int64_t column = 0; column < across; ++column, ++at) {
        to[at] = row < 0 ? 0 : scale_at(from.scales, row / block_extent * across + column);
      }
    }
  }
}

}  // namespace

std::int64_t box_chunk_bytes(WeightScales kind) {
  return moe::kChunkBytes + (kind == WeightScales::units ? moe::kMxScaleBytes : 0);
}

std::size_t boxed_bytes(const MatrixShape& shape, int element_bytes, WeightScales kind) {
  return static_cast<std::size_t>(tile_count(shape) * steps(shape.cols * element_bytes) *
                                  box_chunk_bytes(kind));
}

void pack_boxes(const ConstMatrix& from, int element_bytes, WeightScales kind,
                std::span<std::byte> to) {
  const std::int64_t chunk_bytes = box_chunk_bytes(kind);
  const std::int64_t row_bytes = from.shape.cols * element_bytes, count = steps(row_bytes);
  std::ranges::fill(to, std::byte{0});
  for (std::int64_t tile = 0; tile < tile_count(from.shape); ++tile) {
    std::byte* chunks = to.data() + tile * count * chunk_bytes;
    for (int in_tile = 0; in_tile < tile_rows; ++in_tile) {
      const std::int64_t row = canonical_row(from.shape, part_row(from.shape, tile, in_tile),
                                             is_up(from.shape, in_tile));
      const std::byte* bytes = row < 0 ? nullptr : from.values.data() + row * row_bytes;
      for (std::int64_t step = 0; step < count; ++step) {
        std::byte* chunk = chunks + step * chunk_bytes;
        const std::int64_t first = step * moe::kStepBytes;
        if (row >= 0) {
          pack_row(bytes + first, std::min<std::int64_t>(row_bytes - first, moe::kStepBytes),
                   in_tile, chunk);
        }
        if (kind == WeightScales::units) pack_units(from, row, step, in_tile, chunk);
      }
    }
  }
}

std::size_t scale_count(WeightScales kind, const MatrixShape& shape) {
  switch (kind) {
    case WeightScales::none:
    case WeightScales::units:
      return 0;
    case WeightScales::blocks:
      return static_cast<std::size_t>(tile_count(shape) * (tile_rows / scale_rows(shape)) *
                                      ceil_div(shape.cols, block_extent));
    case WeightScales::channels:
    case WeightScales::matrix:
      break;
  }
  return static_cast<std::size_t>(shape.role == Role::w13 ? 2 * align_up(part_rows(shape), 64)
                                                          : shape.rows);
}

void pack_channels(const MatrixShape& shape, std::span<const float> from, std::span<float> to) {
  const std::int64_t rows = part_rows(shape), pitch = align_up(rows, 64);
  std::ranges::fill(to, 0.0f);
  for (const bool up : {false, true}) {
    if (up && shape.role == Role::w2) break;
    for (std::int64_t row = 0; row < rows; ++row) {
      to[static_cast<std::size_t>((up ? pitch : 0) + row)] =
          from[static_cast<std::size_t>(canonical_row(shape, row, up))];
    }
  }
}

void pack_scales(WeightScales kind, const ConstMatrix& from, std::span<float> to) {
  if (kind == WeightScales::none || kind == WeightScales::units) return;
  if (kind == WeightScales::blocks) return pack_blocks(from, to);
  std::vector<float> rows(static_cast<std::size_t>(from.shape.rows));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    rows[row] =
        scale_at(from.scales, kind == WeightScales::matrix ? 0 : static_cast<std::int64_t>(row));
  }
  pack_channels(from.shape, rows, to);
}

}  // namespace moegauge::cuda
