// What a scheme is to these kernels: which matrix product, how weights and scales are packed, how
// activations are quantised.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/backend.h"
#include "kernels/hip/architecture.h"
#include "reference/numerics.h"
#include "reference/schemes/scheme.h"

namespace moegauge::hip {

enum class WeightScales : std::uint8_t { none, block, channel };
enum class ActivationUnit : std::uint8_t { none, group, row, tensor };

struct LayerFormat {
  const char* name = "";  // of moe::Format's enumerator, in kernels' names
  int element_bytes = 1;
  WeightScales weight_scales = WeightScales::none;
  ActivationUnit activations = ActivationUnit::none;
  bool int8 = false;
  // E4M3FN weights on an architecture with FNUZ: each byte stands for half as much, so scales are
  // doubled. Activations then saturate at 224, which is E4M3FN's 448 in the same way, so the result
  // is the scheme's own.
  bool normalised = false;
  float maximum = 0;  // of activations
  ScaleRule rule = {};
  Numerics numerics = {};
};

// How the kernels of an architecture serve a scheme; nothing where they do not. One family per file
// in schemes/, named once in the list of CMakeLists.txt.
std::optional<LayerFormat> format_of(const Problem& problem, const Architecture& architecture);

using SchemeOnHip = std::optional<LayerFormat>(const Problem& problem,
                                               const Architecture& architecture);

}  // namespace moegauge::hip
