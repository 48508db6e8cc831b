// Int8 weights in groups of columns: made 16-bit matrices before each GEMM.
#include "kernels/cublaslt/schemes/library_scheme.h"

namespace moegauge::cublaslt {
namespace {

bool serves(const SchemeTraits& traits) { return serves_integers(traits, Element::int8); }

}  // namespace

const LibraryScheme& w8a16_scheme() {
  static constexpr LibraryScheme scheme = {
      .enumerator = "half", .integer_bits = 8, .serves = &serves};
  return scheme;
}

}  // namespace moegauge::cublaslt
