// Unquantised weights and activations in bf16 or fp16.
#include "kernels/cublaslt/schemes/library_scheme.h"

namespace moegauge::cublaslt {
namespace {

bool serves(const SchemeTraits& traits) {
  return traits.weight.element == Element::activation_dtype &&
         traits.activation.element == Element::activation_dtype;
}

}  // namespace

const LibraryScheme& half_scheme() {
  static constexpr LibraryScheme scheme = {.enumerator = "half", .serves = &serves};
  return scheme;
}

}  // namespace moegauge::cublaslt
