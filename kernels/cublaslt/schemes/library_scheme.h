// This backend's side of a scheme: how the library multiplies it. One file per scheme family
// defines a LibraryScheme and is named once in the list of kernels/cublaslt/CMakeLists.txt.
#pragma once

#include <cstdint>
#include <span>

#include "reference/layer.h"
#include "reference/schemes/scheme.h"

namespace moegauge::cublaslt {

// Which scales the library's GEMM multiplies its sums by.
enum class Scaling : std::uint8_t {
  none,
  tensor,         // one for all weights of an expert, one for all rows
  outer_vectors,  // one for an output channel, one for a row
  blocks,         // one for 128x128 weights, one for 128 columns of a row
};

struct LibraryScheme {
  // The enumerator of moe::Scheme for which rows are prepared; static_enumerator where the
  // activations' scale is calibrated.
  const char* enumerator;
  const char* static_enumerator = nullptr;
  int element_bytes = 2;  // of both operands of the GEMMs
  Scaling scaling = Scaling::none;
  // Weights of so many bits, which a kernel of ours turns into the layer's 16-bit type before each
  // GEMM; 0: the library reads them as they are.
  int integer_bits = 0;
  bool (*serves)(const SchemeTraits& traits) = nullptr;

  // The library's first version (as cublasLtGetVersion says it) with these scales on Hopper.
  std::size_t least_version() const {
    return scaling == Scaling::outer_vectors || scaling == Scaling::blocks ? 120900 : 0;
  }
};

// For the files of the families. E4M3FN on both sides with fp32 scales for units of these extents;
// integers with activations in 16 bits.
bool serves_e4m3(const SchemeTraits& traits, ScaleUnit weight, ScaleUnit activation);
bool serves_integers(const SchemeTraits& traits, Element element);

std::span<const LibraryScheme* const> library_schemes();
// The first family that serves the scheme; null where none does.
const LibraryScheme* find_scheme(const Scheme& scheme);

}  // namespace moegauge::cublaslt
