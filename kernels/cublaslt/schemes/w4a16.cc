// Int4 weights in groups of columns: made 16-bit matrices before each GEMM.
#include "kernels/cublaslt/schemes/library_scheme.h"

namespace moegauge::cublaslt {
namespace {

bool serves(const SchemeTraits& traits) { return serves_integers(traits, Element::int4); }

}  // namespace

const LibraryScheme& w4a16_scheme() {
  static constexpr LibraryScheme scheme = {
      .enumerator = "half", .integer_bits = 4, .serves = &serves};
  return scheme;
}

}  // namespace moegauge::cublaslt
