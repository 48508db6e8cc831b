// Int4 weights in groups of columns with bf16 scales, bf16 activations.
#include <limits>

#include "kernels/cuda/schemes/integer_schemes.h"

namespace moegauge::cuda {
namespace {

constexpr std::array defaults = {
    DefaultTile{5, integer_tile(8, 8)},
    DefaultTile{9, integer_tile(16, 8)},
    DefaultTile{18, integer_tile(24, 7)},
    DefaultTile{40, integer_tile(48, 5)},
    DefaultTile{72, integer_whole_tile(80, 4, 1000)},
    DefaultTile{128, integer_tile(64, 5)},
    DefaultTile{std::numeric_limits<double>::infinity(), integer_whole_tile(96, 3, 1)},
};

const IntegerSchemes& formats() {
  static const IntegerSchemes schemes = make_integer_schemes("w4a16", 4, defaults);
  return schemes;
}

bool serves(const SchemeTraits& traits, const Layer& layer) {
  return layer.dtype == Dtype::bf16 && serves_integers(traits, Element::int4);
}
const CudaScheme* format(const SchemeTraits& traits) { return find_integers(formats(), traits); }

}  // namespace

const CudaScheme& w4a16_scheme() {
  static const CudaScheme scheme = [] {
    CudaScheme family = formats().front();
    family.serves = &serves;
    family.format = &format;
    return family;
  }();
  return scheme;
}

}  // namespace moegauge::cuda
