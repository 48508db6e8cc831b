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

// How a layer's two GEMMs are computed.
struct Recipe {
  WeightCodec weight = WeightCodec::bf16;
  ActivationCodec activation = ActivationCodec::bf16;
  // Elements along the contracted dimension under one scale, of weights and activations alike; 0
  // where there are none.
  std::int64_t group = 0;
  // Rows of the canonical weight matrix under one scale.
  std::int64_t scale_rows = 0;
  float amax_floor = 0;
  Numerics numerics = {};
};

struct CpuScheme {
  // nullopt: not one of this family, or an option of it that the kernels do not have.
  std::optional<Recipe> (*recipe)(const SchemeTraits& traits, const Layer& layer);
  // The fp32 scale of canonical row `row` and group `group`.
  float (*weight_scale)(const ConstMatrix& w, const Recipe& recipe, std::int64_t row,
                        std::int64_t group);
};

std::span<const CpuScheme* const> cpu_schemes();

// The first family that serves the scheme.
struct Served {
  const CpuScheme* scheme = nullptr;
  Recipe recipe;
};
std::optional<Served> find_recipe(const Scheme& scheme, const Layer& layer);

}  // namespace moegauge::cpu
