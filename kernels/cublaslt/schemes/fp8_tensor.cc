// FP8 E4M3 weights with one fp32 scale per matrix, activations with one per call.
#include "kernels/cublaslt/schemes/library_scheme.h"

namespace moegauge::cublaslt {
namespace {

bool serves(const SchemeTraits& traits) { return serves_e4m3(traits, {0, 0}, {0, 0}); }

}  // namespace

const LibraryScheme& fp8_tensor_scheme() {
  static constexpr LibraryScheme scheme = {.enumerator = "fp8_tensor",
                                           .static_enumerator = "fp8_tensor_static",
                                           .element_bytes = 1,
                                           .scaling = Scaling::tensor,
                                           .serves = &serves};
  return scheme;
}

}  // namespace moegauge::cublaslt
