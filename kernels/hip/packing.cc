#include "kernels/hip/packing.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/hip/device/layer_args.h"

namespace moegauge::hip {
namespace {

constexpr std::int64_t block = 128;  // rows and columns of a scale block

std::int64_t rounded_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

// The matrix's row in a packed row; -1 where that is padding.
std::int64_t row_in(const Layer& layer, Role role, std::int64_t packed, std::int64_t packed_rows) {
  if (role == Role::w2) return packed < layer.hidden_size ? packed : -1;
  const std::int64_t up = packed >= packed_rows / 2 ? 1 : 0;
  const std::int64_t n = packed - up * packed_rows / 2;
  if (n >= layer.intermediate_size) return -1;
  return layer.gate_up_order == GateUpOrder::interleaved ? 2 * n + up
                                                         : up * layer.intermediate_size + n;
}

// OCP's byte as FNUZ: half the number, except that FNUZ has no -0 and another NaN.
std::byte as_fnuz(std::byte code) {
  if ((code & std::byte{0x7f}) == std::byte{0x7f}) return std::byte{0x80};
  return code == std::byte{0x80} ? std::byte{0} : code;
}

// Row `from` of the matrix to row `row` of the packed one.
void pack_row(std::span<const std::byte> from, bool normalised, std::int64_t row,
              std::int64_t steps, std::span<std::byte> to) {
  constexpr std::int64_t chunk = moe::kChunkBytes;
  const std::int64_t tile = row / moe::kTileRows, line = row % moe::kTileRows;
  const auto bytes = static_cast<std::int64_t>(from.size());
  for (std::int64_t at = 0; at < bytes; at += chunk) {
    const std::int64_t step = at / moe::kStepBytes, c = at % moe::kStepBytes / chunk;
    std::byte* place =
        to.data() + (tile * steps + step) * moe::kTileBytes + (c * moe::kTileRows + line) * chunk;
    const auto n = std::min(chunk, bytes - at);
    std::memcpy(place, from.data() + at, static_cast<std::size_t>(n));
    if (normalised) std::transform(place, place + n, place, as_fnuz);
  }
}

}  // namespace

PackedShape packed_shape(const Layer& layer, const LayerFormat& format, Role role) {
  const MatrixShape shape = weight_shape(layer, role);
  const std::int64_t rows = role == Role::w13
                                ? 2 * rounded_up(layer.intermediate_size, moe::kGateRows)
                                : rounded_up(layer.hidden_size, moe::kDownRows);
  PackedShape packed = {
      .tiles = rows / moe::kTileRows,
      .steps = rounded_up(shape.cols * format.element_bytes, moe::kStepBytes) / moe::kStepBytes};
  packed.values = static_cast<std::size_t>(packed.tiles * packed.steps * moe::kTileBytes);
  if (format.weight_scales == WeightScales::block)
    packed.scales = static_cast<std::size_t>(packed.tiles * packed.steps);
  if (format.weight_scales == WeightScales::channel) packed.scales = static_cast<std::size_t>(rows);
  return packed;
}

void pack(const Layer& layer, const Scheme& scheme, const LayerFormat& format,
          const ConstMatrix& matrix, std::span<std::byte> values, std::span<float> scales) {
  const Role role = matrix.shape.role;
  const PackedShape packed = packed_shape(layer, format, role);
  const std::int64_t rows = packed.tiles * moe::kTileRows;
  const auto row_bytes = static_cast<std::size_t>(matrix.shape.cols * format.element_bytes);
  std::ranges::fill(values, std::byte{0});
  std::ranges::fill(scales, 0.0f);
  std::vector<float> from(matrix.scales.size() / sizeof(float));
  if (!from.empty()) std::memcpy(from.data(), matrix.scales.data(), matrix.scales.size());
  if (format.normalised)
    for (float& s : from) s *= 2;
  const bool one_scale = scheme.traits().weight.unit.rows == 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t source = row_in(layer, role, row, rows);
    if (source < 0) continue;
    pack_row(matrix.values.subspan(static_cast<std::size_t>(source) * row_bytes, row_bytes),
             format.normalised, row, packed.steps, values);
    if (format.weight_scales == WeightScales::channel) {
      scales[static_cast<std::size_t>(row)] =
          from[one_scale ? 0 : static_cast<std::size_t>(source)];
    } else if (format.weight_scales == WeightScales::block && row % moe::kTileRows == 0) {
      const auto line = static_cast<std::size_t>(source / block * packed.steps);
      std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(line), packed.steps,
                  scales.begin() + row / moe::kTileRows * packed.steps);
    }
  }
}

std::optional<std::string> straddles(const Layer& layer, const LayerFormat& format) {
  if (format.weight_scales != WeightScales::block) return std::nullopt;
  if (layer.intermediate_size % moe::kTileRows == 0) return std::nullopt;
  return "intermediate_size is " + std::to_string(layer.intermediate_size) +
         "; with scales by block the kernels need a multiple of " + std::to_string(moe::kTileRows) +
         ", so that the rows of a matrix instruction share a scale";
}

}  // namespace moegauge::hip
