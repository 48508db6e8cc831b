// Weights in the order in which the kernels read them. One expert's matrix is a run of tiles; a
// tile is read front to back by one task, so that a task is one stream.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cpu/buffer.h"
#include "kernels/cpu/isa/kernel_table.h"
#include "kernels/cpu/schemes/cpu_scheme.h"
#include "reference/base/thread_pool.h"
#include "reference/schemes/matrix_storage.h"

namespace moegauge::cpu {

// The contracted elements of one expert's matrix in the order in which they are packed. With a
// group index they are sorted by group, each group filled up to whole lines, so that an expert may
// have fewer elements than its layout has room for.
struct ElementOrder {
  std::vector<std::int32_t> from;   // canonical column of each packed element; -1: a zero
  std::vector<std::int32_t> group;  // canonical scale group of each packed one
};

// Where things lie within one expert's packed w13 or w2. Columns are h for w13 (gate and up vectors
// alternate), y for w2.
class MatrixLayout {
 public:
  MatrixLayout(const Layer& layer, Role role, const Recipe& recipe, WeightLayout element);

  const MatrixShape& shape() const { return shape_; }
  std::int64_t columns() const { return columns_; }                         // of output: N or K
  int tile_columns() const { return paired_ ? 2 * kVector : 4 * kVector; }  // of a full tile
  std::int64_t tiles() const { return (vectors_ + kMaxTileVectors - 1) / kMaxTileVectors; }
  int tile_vectors(std::int64_t tile) const;           // 4, or 2 for a short last tile
  std::int64_t elements() const { return elements_; }  // contracted length, padded
  std::int64_t groups() const { return groups_; }      // of scales; 0 where there are none
  std::int64_t group() const { return group_; }        // elements of one; 0: all
  int scale_lanes() const { return scale_lanes_; }

  // Offsets in bytes from the expert's matrix; each part starts on a cache line.
  std::int64_t tile_offset(std::int64_t tile) const {
    return tile * kMaxTileVectors * vector_bytes();
  }
  std::int64_t scale_offset(std::int64_t tile) const;
  std::int64_t zero_offset(std::int64_t tile) const;
  std::int64_t rare_offset(std::int64_t tile) const;
  std::int64_t bias_offset(std::int64_t tile) const;
  std::int64_t bytes() const { return bytes_; }

  // The marks of a tile's rare codes (GemmArgs::w_rare); nullptr where no code is rare.
  const std::uint8_t* rare_marks(const std::byte* expert, std::int64_t tile) const;

  // Canonical row of a tile's output column; -1 for padding.
  std::int64_t row(std::int64_t tile, int vector, int lane) const;

  void pack(const ConstMatrix& w, const std::vector<float>& bias, const CpuScheme& scheme,
            std::byte* out) const;

  // Where there is a group index: an expert's elements and where each is to be taken from.
  bool reordered() const { return recipe_.group_index; }
  std::span<const std::int32_t> packed_from(const std::byte* expert) const;

 private:
  std::int64_t vector_bytes() const { return elements_ / element_.run * 64; }
  ElementOrder element_order(const ConstMatrix& w) const;
  bool scales_straddle_vectors() const;
  std::int64_t per_group_offset(std::int64_t begin, std::int64_t tile) const;
  template <int kBits>
  void pack_vector(const ConstMatrix& w, const ElementOrder& order, std::int64_t tile, int vector,
                   std::byte* expert) const;
  bool recode(std::span<std::byte> line) const;
  std::int64_t marks_of_tile() const { return elements_ / kRareElements; }
  std::int64_t per_group_bytes() const;
  using PerGroup = float (*)(const ConstMatrix&, const Recipe&, std::int64_t row,
                             std::int64_t group);
  void pack_per_group(const ConstMatrix& w, const ElementOrder& order, PerGroup value,
                      std::int64_t tile, std::byte* out) const;

  MatrixShape shape_;
  Recipe recipe_;
  WeightLayout element_;
  bool paired_, bias_;
  std::int64_t columns_, vectors_, elements_, group_, groups_;
  int scale_lanes_ = 1;
  std::int64_t scales_begin_ = 0, zeros_begin_ = 0, rare_begin_ = 0, bias_begin_ = 0,
               order_begin_ = 0, bytes_ = 0;
};

// All local experts, in `sets` equal copies.
class PackedWeights {
 public:
  // Throws std::bad_alloc.
  PackedWeights(const Layer& layer, const Scheme& scheme, const Served& served,
                const KernelTable& kernels, const ExpertSource& experts, int sets,
                ThreadPool& pool);

  static std::int64_t set_bytes(const Layer& layer, const MatrixLayout& w13,
                                const MatrixLayout& w2);

  const MatrixLayout& w13() const { return w13_; }
  const MatrixLayout& w2() const { return w2_; }
  const std::byte* expert_w13(int set, std::int64_t expert) const;
  const std::byte* expert_w2(int set, std::int64_t expert) const;
  int sets() const { return static_cast<int>(sets_.size()); }
  std::int64_t bytes() const { return set_bytes_; }
  // The calibrated scale of the activations that enter the GEMM of `role`; 0 where there is none.
  float activation_scale(Role role) const { return activation_scales_[role == Role::w13 ? 0 : 1]; }

 private:
  struct Canonical {
    MatrixStorage w13, w2;
  };
  void pack_expert(const Layer& layer, const CpuScheme& cpu_scheme, const ExpertSource& experts,
                   std::int64_t expert, Canonical& canonical);
  void read_once(const KernelTable& kernels, ThreadPool& pool) const;

  MatrixLayout w13_, w2_;
  std::int64_t set_bytes_;
  std::array<float, 2> activation_scales_ = {};
  std::vector<Array<std::byte>> sets_;
};

}  // namespace moegauge::cpu
