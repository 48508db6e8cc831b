// FP8 E4M3 weights with one fp32 scale per 128x128 block, activations with one per 1x128.
#include "kernels/cublaslt/schemes/library_scheme.h"

namespace moegauge::cublaslt {
namespace {

bool serves(const SchemeTraits& traits) { return serves_e4m3(traits, {128, 128}, {1, 128}); }

}  // namespace

const LibraryScheme& fp8_block_scheme() {
  static constexpr LibraryScheme scheme = {
      .enumerator = "fp8_block", .element_bytes = 1, .scaling = Scaling::blocks, .serves = &serves};
  return scheme;
}

}  // namespace moegauge::cublaslt
