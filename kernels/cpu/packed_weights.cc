#include "kernels/cpu/packed_weights.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "reference/schemes/matrix_storage.h"

namespace moegauge::cpu {
namespace {

constexpr std::int64_t kLine = 64;

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

template <int kBytes>
void scatter_row(const std::byte* row, std::int64_t count, int run, const std::uint8_t* order,
                 std::byte* out) {
  for (std::int64_t k = 0; k < count; k += run, out += kLine) {
    const std::int64_t n = std::min<std::int64_t>(run, count - k);
    for (std::int64_t j = 0; j < n; ++j) {
      std::memcpy(out + order[j] * kBytes, row + (k + j) * kBytes, kBytes);
    }
  }
}

}  // namespace

MatrixLayout::MatrixLayout(const Layer& layer, Role role, const Recipe& recipe,
                           WeightLayout element)
    : shape_(weight_shape(layer, role)),
      recipe_(recipe),
      element_(element),
      paired_(role == Role::w13),
      bias_(layer.expert_bias && (paired_ || layer.adds_w2_bias)),
      columns_(paired_ ? layer.intermediate_size : layer.hidden_size),
      elements_(round_up(shape_.cols, kPadElements)),
      groups_(recipe.group > 0 ? (shape_.cols + recipe.group - 1) / recipe.group : 0) {
  const std::int64_t column_vectors = (columns_ + kVector - 1) / kVector;
  vectors_ = paired_ ? 2 * column_vectors : round_up(column_vectors, 2);
  // One scale per vector serves where no vector straddles two scales.
  for (std::int64_t t = 0; groups_ > 0 && t < tiles(); ++t) {
    for (int v = 0; v < tile_vectors(t); ++v) {
      std::int64_t first = -1;
      for (int lane = 0; lane < kVector; ++lane) {
        const std::int64_t r = row(t, v, lane);
        if (r < 0) continue;
        const std::int64_t unit = r / recipe_.scale_rows;
        if (first < 0) first = unit;
        if (unit != first) scale_lanes_ = kVector;
      }
    }
  }
  const std::int64_t float_bytes = sizeof(float);
  scales_begin_ = vectors_ * vector_bytes();
  bias_begin_ = round_up(scales_begin_ + vectors_ * groups_ * scale_lanes_ * float_bytes, kLine);
  bytes_ = round_up(bias_begin_ + (bias_ ? vectors_ * kVector * float_bytes : 0), kLine);
}

int MatrixLayout::tile_vectors(std::int64_t tile) const {
  return static_cast<int>(
      std::min<std::int64_t>(kMaxTileVectors, vectors_ - tile * kMaxTileVectors));
}

std::int64_t MatrixLayout::scale_offset(std::int64_t tile) const {
  return scales_begin_ +
         tile * kMaxTileVectors * groups_ * scale_lanes_ * std::int64_t{sizeof(float)};
}

std::int64_t MatrixLayout::bias_offset(std::int64_t tile) const {
  return bias_begin_ + tile * kMaxTileVectors * kVector * std::int64_t{sizeof(float)};
}

std::int64_t MatrixLayout::row(std::int64_t tile, int vector, int lane) const {
  const std::int64_t v = tile * kMaxTileVectors + vector;
  const std::int64_t column = (paired_ ? v / 2 : v) * kVector + lane;
  if (column >= columns_) return -1;
  if (!paired_) return column;
  const bool up = v % 2 != 0;
  if (shape_.gate_up_order == GateUpOrder::interleaved) return 2 * column + (up ? 1 : 0);
  return column + (up ? columns_ : 0);
}

void MatrixLayout::pack_vector(const ConstMatrix& w, std::int64_t tile, int vector,
                               std::byte* out) const {
  const std::int64_t stride = tile_vectors(tile) * kLine;  // from run to run of one vector
  const std::int64_t bytes_per_row = shape_.cols * element_.element_bytes;
  std::vector<std::byte> lines(static_cast<std::size_t>(vector_bytes()));
  for (int lane = 0; lane < kVector; ++lane) {
    const std::int64_t r = row(tile, vector, lane);
    if (r < 0) continue;
    const std::byte* from = w.values.data() + r * bytes_per_row;
    const std::uint8_t* order = element_.order + lane * element_.run;
    if (element_.element_bytes == 1) {
      scatter_row<1>(from, shape_.cols, element_.run, order, lines.data());
    } else {
      scatter_row<2>(from, shape_.cols, element_.run, order, lines.data());
    }
  }
  const std::int64_t runs = vector_bytes() / kLine;
  for (std::int64_t i = 0; i < runs; ++i) {
    std::memcpy(out + i * stride + vector * kLine, lines.data() + i * kLine, kLine);
  }
}

void MatrixLayout::pack(const ConstMatrix& w, const std::vector<float>& bias,
                        const CpuScheme& scheme, std::byte* out) const {
  for (std::int64_t t = 0; t < tiles(); ++t) {
    const int vectors = tile_vectors(t);
    auto* scales = reinterpret_cast<float*>(out + scale_offset(t));
    auto* biases = reinterpret_cast<float*>(out + bias_offset(t));
    for (int v = 0; v < vectors; ++v) {
      pack_vector(w, t, v, out + tile_offset(t));
      for (int lane = 0; lane < kVector; ++lane) {
        const std::int64_t r = row(t, v, lane);
        if (bias_) biases[v * kVector + lane] = r < 0 ? 0.0f : bias[static_cast<std::size_t>(r)];
        if (lane >= scale_lanes_) continue;
        for (std::int64_t g = 0; g < groups_; ++g) {
          scales[(g * vectors + v) * scale_lanes_ + lane] =
              r < 0 ? 0.0f : scheme.weight_scale(w, recipe_, r, g);
        }
      }
    }
  }
}

std::int64_t PackedWeights::set_bytes(const Layer& layer, const MatrixLayout& w13,
                                      const MatrixLayout& w2) {
  return layer.local_experts() * (w13.bytes() + w2.bytes());
}

PackedWeights::PackedWeights(const Layer& layer, const Scheme& scheme, const Served& served,
                             const KernelTable& kernels, const ExpertSource& experts, int sets,
                             ThreadPool& pool)
    : w13_(layer, Role::w13, served.recipe,
           kernels.weight_layout(served.recipe.weight, kernels.dot_unit(served.recipe.activation))),
      w2_(layer, Role::w2, served.recipe,
          kernels.weight_layout(served.recipe.weight, kernels.dot_unit(served.recipe.activation))),
      set_bytes_(set_bytes(layer, w13_, w2_)) {
  for (int s = 0; s < sets; ++s) sets_.emplace_back(set_bytes_);
  const std::int64_t expert_bytes = w13_.bytes() + w2_.bytes();
  pool.parallel_for(layer.local_experts(), [&](std::int64_t e) {
    pack_expert(layer, scheme, *served.scheme, experts, e);
    for (int s = 1; s < sets; ++s) {
      std::memcpy(sets_[static_cast<std::size_t>(s)].data() + e * expert_bytes,
                  sets_[0].data() + e * expert_bytes, static_cast<std::size_t>(expert_bytes));
    }
  });
  read_once(kernels, pool);
}

void PackedWeights::pack_expert(const Layer& layer, const Scheme& scheme,
                                const CpuScheme& cpu_scheme, const ExpertSource& experts,
                                std::int64_t expert) {
  std::byte* out = sets_[0].data() + expert * (w13_.bytes() + w2_.bytes());
  for (const MatrixLayout* layout : {&w13_, &w2_}) {
    const MatrixShape& shape = layout->shape();
    MatrixStorage canonical(scheme, shape);
    experts.quantized(expert, canonical.view());
    const std::vector<float> bias =
        layer.expert_bias ? experts.bias(expert, shape.role) : std::vector<float>{};
    layout->pack(std::as_const(canonical).view(), bias, cpu_scheme, out);
    out += layout->bytes();
  }
}

// The first read of freshly written pages can be far slower than every later one.
void PackedWeights::read_once(const KernelTable& kernels, ThreadPool& pool) const {
  std::atomic<std::uint64_t> sink = 0;
  constexpr std::int64_t kChunk = std::int64_t{1} << 22;
  for (const Array<std::byte>& set : sets_) {
    const std::int64_t chunks = (set.size() + kChunk - 1) / kChunk;
    pool.parallel_for(chunks, [&](std::int64_t c) {
      const std::int64_t begin = c * kChunk;
      const std::int64_t bytes = std::min(kChunk, set.size() - begin) / 256 * 256;
      sink += kernels.sum(set.data() + begin, bytes);
    });
  }
}

const std::byte* PackedWeights::expert_w13(int set, std::int64_t expert) const {
  return sets_[static_cast<std::size_t>(set)].data() + expert * (w13_.bytes() + w2_.bytes());
}

const std::byte* PackedWeights::expert_w2(int set, std::int64_t expert) const {
  return expert_w13(set, expert) + w13_.bytes();
}

}  // namespace moegauge::cpu
