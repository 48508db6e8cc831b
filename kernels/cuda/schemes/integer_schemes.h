// For w4a16.cc and w8a16.cc: what the schemes with integer weights and 16-bit activations share.
// Each combination of group, zero points and act_order is a CudaScheme of its own, since the
// kernels are compiled for it.
#pragma once

#include <array>

#include "kernels/cuda/schemes/cuda_scheme.h"

namespace moegauge::cuda {

// Group 32, 64, 128, and per channel as 128 with repeated scales; zero points; act_order.
using IntegerSchemes = std::array<CudaScheme, 16>;

IntegerSchemes make_integer_schemes(const char* enumerator, int bits,
                                    std::span<const DefaultTile> defaults);
bool serves_integers(const SchemeTraits& traits, Element element);
// The one of `schemes` that serves `traits`; null where none does.
const CudaScheme* find_integers(const IntegerSchemes& schemes, const SchemeTraits& traits);

// The family of all of them for one integer: Integer has its enumerator, element, bits and
// defaults.
template <typename Integer>
const CudaScheme& integer_family() {
  static const IntegerSchemes formats =
      make_integer_schemes(Integer::enumerator, Integer::bits, Integer::defaults);
  static const CudaScheme family = [] {
    CudaScheme first = formats.front();
    first.serves = [](const SchemeTraits& traits, const Layer&) {
      return serves_integers(traits, Integer::element);
    };
    first.format = [](const SchemeTraits& traits) { return find_integers(formats, traits); };
    return first;
  }();
  return family;
}

}  // namespace moegauge::cuda
