// FP8 E4M3 weights with one fp32 scale per output channel, activations with one per token.
#include "kernels/cublaslt/schemes/library_scheme.h"

namespace moegauge::cublaslt {
namespace {

bool serves(const SchemeTraits& traits) {
  return serves_e4m3(traits, {1, 0}, {1, 0}) && !traits.activation.static_scale;
}

}  // namespace

const LibraryScheme& fp8_ptpc_scheme() {
  static constexpr LibraryScheme scheme = {.enumerator = "fp8_ptpc",
                                           .element_bytes = 1,
                                           .scaling = Scaling::outer_vectors,
                                           .serves = &serves};
  return scheme;
}

}  // namespace moegauge::cublaslt
