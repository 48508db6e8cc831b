// The CPU backend's side of a scheme: which codecs and scale groups serve it. One file per scheme
// family defines a CpuScheme and is named once in the list of kernels/cpu/CMakeLists.txt; the
// kernels know codecs, not schemes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "kernels/cpu/isa/kernel_table.h"
#include "reference/numerics.h"
#include "reference/schemes/scheme.h"

namespace moegauge::cpu {

// Which activations share a scale.
enum class ActivationScale : std::uint8_t {
  none,
  group,   // a row's elements under one scale of the weights
  row,     // one token's x, one pair's h
  tensor,  // all rows of a call
  fixed,   // calibrated: ExpertSource::activation_scale
};

// How a layer's two GEMMs are computed.
struct Recipe {
  WeightCodec weight = WeightCodec::bf16;
  // Flipped in every byte of the canonical codes: an offset is thus turned into two's complement.
  std::uint8_t flipped_bits = 0;
  ScaleKind scales = ScaleKind::none;      // of canonical weights
  ScaleType scale_type = ScaleType::fp32;  // in which the kernels hold them, and zero points
  // Elements along the contracted dimension under one scale; 0: all.
  std::int64_t group = 0;
  // Rows of the canonical weight matrix under one scale; 0: all.
  std::int64_t scale_rows = 0;
  bool zero_points = false;  // weights are (code - zero point) * scale
  // Columns of one group are scattered: a group index per column says of which group it is. The
  // kernels see them in the order of their groups.
  bool group_index = false;

  ActivationCodec activation = ActivationCodec::bf16;
  ActivationScale activation_scale = ActivationScale::none;
  Scaling scaling = {};
  Numerics numerics = {};

  bool scaled() const { return scales != ScaleKind::none; }
};

struct CpuScheme {
  // nullopt: not one of this family, or an option of it that the kernels do not have.
  std::optional<Recipe> (*recipe)(const SchemeTraits& traits, const Layer& layer);
  // The fp32 scale of canonical row `row` and group `group`; nullptr where nothing is scaled.
  float (*weight_scale)(const ConstMatrix& w, const Recipe& recipe, std::int64_t row,
                        std::int64_t group) = nullptr;
  // Its zero point, in the codes that the kernels see; nullptr where there are none.
  float (*weight_zero)(const ConstMatrix& w, const Recipe& recipe, std::int64_t row,
                       std::int64_t group) = nullptr;
};

std::span<const CpuScheme* const> cpu_schemes();

// The first family that serves the scheme.
struct Served {
  const CpuScheme* scheme = nullptr;
  Recipe recipe;
};
std::optional<Served> find_recipe(const Scheme& scheme, const Layer& layer);

}  // namespace moegauge::cpu
