#include "kernels/cpu/packed_weights.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "reference/base/integers.h"
#include "reference/formats/bf16.h"
#include "reference/formats/fp16.h"
#include "reference/formats/int4.h"

namespace moegauge::cpu {
namespace {

constexpr std::int64_t kLine = 64;

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// What a line holds of one column: 32 bits.
using Word = std::uint32_t;
using Line = std::array<Word, kVector>;  // in the order of the columns
static_assert(sizeof(Line) == kLine);

// Whether the elements `from` of a canonical row are one read, as all are without a group index.
// First and last tell, because a run lies within one group, whose columns ascend (element_order):
// groups begin at multiples of kPadElements, and so of every run.
bool is_one_read(std::span<const std::int32_t> from, int bits) {
  return from.front() >= 0 && from.back() == from.front() + std::ssize(from) - 1 &&
         from.front() * std::int64_t{bits} % 8 == 0;
}

// The elements `from` of a row, one after the other; 0 for those that are none.
template <int kBits>
Word gather_word(const std::byte* row, std::span<const std::int32_t> from, Word flip) {
  Word word = 0;
  for (std::size_t k = 0; k < from.size(); ++k) {
    if (from[k] < 0) continue;
    const std::int64_t at = from[k] * std::int64_t{kBits};
    Word element = 0;
    std::memcpy(&element, row + at / 8, kBits == 16 ? 2 : 1);
    element = ((element ^ flip) >> at % 8) & ((1u << kBits) - 1);
    word |= element << (k * kBits);
  }
  return word;
}

// Each element to its place (WeightLayout::order).
template <int kBits>
void arrange(const Line& line, const std::uint8_t* order, std::byte* out) {
  const auto* in = reinterpret_cast<const std::byte*>(line.data());
  if constexpr (kBits == 4) {
    std::memset(out, 0, kLine);
    for (int i = 0; i < 2 * kLine; ++i) {
      const auto pair = static_cast<std::uint8_t>(in[i / 2]);
      out[order[i] / 2] |= std::byte{pack_nibbles(nibble(pair, i % 2), 0)} << order[i] % 2 * 4;
    }
  } else {
    constexpr int kBytes = kBits / 8;
    for (int i = 0; i < kLine / kBytes; ++i) {
      std::memcpy(out + order[i] * kBytes, in + i * kBytes, kBytes);
    }
  }
}

// In the low bytes.
std::uint32_t scale_bits(ScaleType type, float value) {
  switch (type) {
    case ScaleType::fp32:
      return std::bit_cast<std::uint32_t>(value);
    case ScaleType::bf16:
      return float_to_bf16(value);
    case ScaleType::fp16:
      return float_to_fp16(value);
  }
  return 0;
}

// With a group index an expert's groups may have any sizes, and each ends with a line that is not
// full.
std::int64_t most_elements(const Recipe& recipe, const MatrixShape& shape) {
  const std::int64_t cols = shape.cols;
  if (!recipe.group_index) return round_up(cols, kPadElements);
  const std::int64_t whole = std::max(cols, shape.whole_cols);
  const std::int64_t groups = std::min(cols, (whole + recipe.group - 1) / recipe.group);
  return (cols + groups * (kPadElements - 1)) / kPadElements * kPadElements;
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
      elements_(most_elements(recipe, shape_)),
      group_(recipe.group_index ? kPadElements : recipe.group),
      groups_(!recipe.scaled() ? 0
              : group_ == 0    ? 1
                               : (elements_ + group_ - 1) / group_) {
  const std::int64_t column_vectors = (columns_ + kVector - 1) / kVector;
  vectors_ = paired_ ? 2 * column_vectors : round_up(column_vectors, 2);
  if (scales_straddle_vectors()) scale_lanes_ = kVector;
  const std::int64_t per_group = vectors_ * per_group_bytes();
  const std::int64_t bias = bias_ ? vectors_ * kVector * std::int64_t{sizeof(float)} : 0;
  const std::int64_t order = reordered() ? (elements_ + 1) * std::int64_t{sizeof(std::int32_t)} : 0;
  scales_begin_ = vectors_ * vector_bytes();
  zeros_begin_ = round_up(scales_begin_ + per_group, kLine);
  rare_begin_ = round_up(zeros_begin_ + (recipe.zero_points ? per_group : 0), kLine);
  bias_begin_ = round_up(rare_begin_ + (element.rare ? tiles() * marks_of_tile() : 0), kLine);
  order_begin_ = round_up(bias_begin_ + bias, kLine);
  bytes_ = round_up(order_begin_ + order, kLine);
}

// One scale per vector serves where no vector does.
bool MatrixLayout::scales_straddle_vectors() const {
  if (!recipe_.scaled() || recipe_.scale_rows == 0) return false;
  for (std::int64_t t = 0; t < tiles(); ++t) {
    for (int v = 0; v < tile_vectors(t); ++v) {
      std::int64_t first = -1;
      for (int lane = 0; lane < kVector; ++lane) {
        const std::int64_t r = row(t, v, lane);
        if (r < 0) continue;
        const std::int64_t unit = r / recipe_.scale_rows;
        if (first < 0) first = unit;
        if (unit != first) return true;
      }
    }
  }
  return false;
}

int MatrixLayout::tile_vectors(std::int64_t tile) const {
  return static_cast<int>(
      std::min<std::int64_t>(kMaxTileVectors, vectors_ - tile * kMaxTileVectors));
}

// Of one vector: a number for each scale group.
std::int64_t MatrixLayout::per_group_bytes() const {
  return groups_ * scale_lanes_ * scale_bytes(recipe_.scale_type);
}

std::int64_t MatrixLayout::per_group_offset(std::int64_t begin, std::int64_t tile) const {
  return begin + tile * kMaxTileVectors * per_group_bytes();
}

std::int64_t MatrixLayout::scale_offset(std::int64_t tile) const {
  return per_group_offset(scales_begin_, tile);
}

std::int64_t MatrixLayout::zero_offset(std::int64_t tile) const {
  return per_group_offset(zeros_begin_, tile);
}

std::int64_t MatrixLayout::rare_offset(std::int64_t tile) const {
  return rare_begin_ + tile * marks_of_tile();
}

const std::uint8_t* MatrixLayout::rare_marks(const std::byte* expert, std::int64_t tile) const {
  if (!element_.rare) return nullptr;
  return reinterpret_cast<const std::uint8_t*>(expert + rare_offset(tile));
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

ElementOrder MatrixLayout::element_order(const ConstMatrix& w) const {
  ElementOrder order;
  const auto cols = static_cast<std::size_t>(shape_.cols);
  if (!reordered()) {
    order.from.assign(static_cast<std::size_t>(elements_), -1);
    std::iota(order.from.begin(), order.from.begin() + shape_.cols, 0);
    order.group.resize(static_cast<std::size_t>(groups_));
    std::iota(order.group.begin(), order.group.end(), 0);
    return order;
  }
  std::vector<std::int32_t> group_of(cols);
  std::memcpy(group_of.data(), w.group_index.data(), cols * sizeof(std::int32_t));
  std::vector<std::int32_t> columns(cols);
  std::iota(columns.begin(), columns.end(), 0);
  std::ranges::stable_sort(columns, {}, [&](std::int32_t c) { return group_of[index(c)]; });
  for (std::size_t i = 0; i < cols; ++i) {
    const std::int32_t group = group_of[index(columns[i])];
    if (i > 0 && group != order.group.back()) {
      order.from.resize(order.group.size() * kPadElements, -1);
    }
    if (order.from.size() % kPadElements == 0) order.group.push_back(group);
    order.from.push_back(columns[i]);
  }
  order.from.resize(order.group.size() * kPadElements, -1);
  return order;
}

// A line as it is stored; whether any of its codes is rare.
bool MatrixLayout::recode(std::span<std::byte> line) const {
  std::uint8_t rare = 0;
  for (std::byte& stored : line) {
    const auto code = static_cast<std::uint8_t>(stored);
    stored = std::byte{element_.recoded[code]};
    rare = static_cast<std::uint8_t>(rare | element_.rare[code]);
  }
  return rare != 0;
}

// Line by line, each from the rows of its 16 columns, so that what is written is written once and
// in order.
template <int kBits>
void MatrixLayout::pack_vector(const ConstMatrix& w, const ElementOrder& order, std::int64_t tile,
                               int vector, std::byte* expert) const {
  const std::int64_t stride = tile_vectors(tile) * kLine;  // from run to run of one vector
  const std::int64_t bytes_per_row = (shape_.cols * element_.element_bits + 7) / 8;
  const auto run = index(element_.run);
  std::array<const std::byte*, kVector> rows = {};
  for (int lane = 0; lane < kVector; ++lane) {
    const std::int64_t r = row(tile, vector, lane);
    if (r >= 0) rows[index(lane)] = w.values.data() + r * bytes_per_row;
  }
  std::byte* out = expert + tile_offset(tile) + vector * kLine;
  std::byte* const marks = expert + rare_offset(tile);
  const std::span<const std::int32_t> from = order.from;
  const std::int64_t written = std::ssize(from) / element_.run;
  const Word flip = kBits == 16 ? 0 : recipe_.flipped_bits * 0x01010101u;
  for (std::int64_t i = 0; i < vector_bytes() / kLine; ++i, out += stride) {
    Line line = {};
    const auto columns = i < written ? from.subspan(index(i) * run, run) : from.first(0);
    const bool one_read = !columns.empty() && is_one_read(columns, kBits);
    for (std::size_t lane = 0; lane < rows.size() && !columns.empty(); ++lane) {
      if (rows[lane] == nullptr) continue;
      if (one_read) {
        std::memcpy(&line[lane], rows[lane] + columns.front() * std::int64_t{kBits} / 8,
                    sizeof(Word));
        line[lane] ^= flip;
      } else {
        line[lane] = gather_word<kBits>(rows[lane], columns, flip);
      }
    }
    arrange<kBits>(line, element_.order, out);
    if (element_.recoded && recode({out, index(kLine)})) {
      marks[i / (kRareElements / element_.run)] |= std::byte{1} << vector;
    }
  }
}

// A number for each scale group of a tile's columns.
void MatrixLayout::pack_per_group(const ConstMatrix& w, const ElementOrder& order, PerGroup value,
                                  std::int64_t tile, std::byte* out) const {
  for (const std::int32_t group : order.group) {
    for (int v = 0; v < tile_vectors(tile); ++v) {
      for (int lane = 0; lane < scale_lanes_; ++lane) {
        const std::int64_t r = row(tile, v, lane);
        const float number = r < 0 ? 0.0f : value(w, recipe_, r, group);
        const std::uint32_t bits = scale_bits(recipe_.scale_type, number);
        std::memcpy(out, &bits, static_cast<std::size_t>(scale_bytes(recipe_.scale_type)));
        out += scale_bytes(recipe_.scale_type);
      }
    }
  }
}

void MatrixLayout::pack(const ConstMatrix& w, const std::vector<float>& bias,
                        const CpuScheme& scheme, std::byte* out) const {
  const ElementOrder order = element_order(w);
  const auto pack_one = element_.element_bits == 16  ? &MatrixLayout::pack_vector<16>
                        : element_.element_bits == 8 ? &MatrixLayout::pack_vector<8>
                                                     : &MatrixLayout::pack_vector<4>;
  for (std::int64_t t = 0; t < tiles(); ++t) {
    auto* biases = reinterpret_cast<float*>(out + bias_offset(t));
    if (recipe_.scaled()) pack_per_group(w, order, scheme.weight_scale, t, out + scale_offset(t));
    if (recipe_.zero_points) pack_per_group(w, order, scheme.weight_zero, t, out + zero_offset(t));
    if (element_.rare) std::memset(out + rare_offset(t), 0, index(marks_of_tile()));
    for (int v = 0; v < tile_vectors(t); ++v) {
      (this->*pack_one)(w, order, t, v, out);
      for (int lane = 0; bias_ && lane < kVector; ++lane) {
        const std::int64_t r = row(t, v, lane);
        biases[v * kVector + lane] = r < 0 ? 0.0f : bias[index(r)];
      }
    }
  }
  if (!reordered()) return;
  auto* const header = reinterpret_cast<std::int32_t*>(out + order_begin_);
  header[0] = static_cast<std::int32_t>(order.from.size());
  std::ranges::copy(order.from, header + 1);
}

std::span<const std::int32_t> MatrixLayout::packed_from(const std::byte* expert) const {
  const auto* const header = reinterpret_cast<const std::int32_t*>(expert + order_begin_);
  return {header + 1, index(header[0])};
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
  if (served.recipe.activation_scale == ActivationScale::fixed) {
    activation_scales_ = {experts.activation_scale(Role::w13), experts.activation_scale(Role::w2)};
  }
  for (int s = 0; s < sets; ++s) sets_.emplace_back(set_bytes_);
  const std::int64_t expert_bytes = w13_.bytes() + w2_.bytes();
  // A thread's from expert to expert: fresh pages would take as long as filling them.
  std::vector<Canonical> canonical;
  for (int t = 0; t < pool.threads(); ++t) {
    canonical.push_back({{scheme, w13_.shape()}, {scheme, w2_.shape()}});
  }
  pool.parallel_for(layer.local_experts(), [&](std::int64_t e, int thread) {
    pack_expert(layer, *served.scheme, experts, e, canonical[index(thread)]);
    for (int s = 1; s < sets; ++s) {
      std::memcpy(sets_[index(s)].data() + e * expert_bytes, sets_[0].data() + e * expert_bytes,
                  static_cast<std::size_t>(expert_bytes));
    }
  });
  read_once(kernels, pool);
}

void PackedWeights::pack_expert(const Layer& layer, const CpuScheme& cpu_scheme,
                                const ExpertSource& experts, std::int64_t expert,
                                Canonical& canonical) {
  std::byte* out = sets_[0].data() + expert * (w13_.bytes() + w2_.bytes());
  for (const auto& [layout, storage] :
       {std::pair(&w13_, &canonical.w13), std::pair(&w2_, &canonical.w2)}) {
    experts.quantized(expert, storage->view());
    const std::vector<float> bias =
        layer.expert_bias ? experts.bias(expert, layout->shape().role) : std::vector<float>{};
    layout->pack(std::as_const(*storage).view(), bias, cpu_scheme, out);
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
  return sets_[index(set)].data() + expert * (w13_.bytes() + w2_.bytes());
}

const std::byte* PackedWeights::expert_w2(int set, std::int64_t expert) const {
  return expert_w13(set, expert) + w13_.bytes();
}

}  // namespace moegauge::cpu
