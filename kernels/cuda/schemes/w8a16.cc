// Int8 weights in groups of columns with bf16 scales, bf16 activations.
#include <limits>

#include "kernels/cuda/schemes/integer_schemes.h"

namespace moegauge::cuda {
namespace {

// Not measured: the four-bit ones with as many stages as fit.
constexpr std::array defaults = {
    DefaultTile{5, integer_tile(8, 5)},
    DefaultTile{9, integer_tile(16, 5)},
    DefaultTile{18, integer_tile(24, 4)},
    DefaultTile{40, integer_tile(48, 4)},
    DefaultTile{std::numeric_limits<double>::infinity(), integer_whole_tile(80, 3, 1)},
};

const IntegerSchemes& formats() {
  static const IntegerSchemes schemes = make_integer_schemes("w8a16", 8, defaults);
  return schemes;
}

bool serves(const SchemeTraits& traits, const Layer& layer) {
  return layer.dtype == Dtype::bf16 && serves_integers(traits, Element::int8);
}
const CudaScheme* format(const SchemeTraits& traits) { return find_integers(formats(), traits); }

}  // namespace

const CudaScheme& w8a16_scheme() {
  static const CudaScheme scheme = [] {
    CudaScheme family = formats().front();
    family.serves = &serves;
    family.format = &format;
    return family;
  }();
  return scheme;
}

}  // namespace moegauge::cuda
