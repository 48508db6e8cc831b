// FP8 E4M3 weights with one fp32 scale per matrix, activations with one per call: calibrated, or
// from the largest magnitude of all of x and all of h.
#include <array>
#include <limits>

#include "kernels/cuda/schemes/fp8_schemes.h"

namespace moegauge::cuda {
namespace {

bool serves(const SchemeTraits& traits, const Layer&) {
  return serves_e4m3(traits, {0, 0}, {0, 0});
}

// Those of fp8_ptpc, whose kernels these are but for where a row's scale comes from.
constexpr std::array defaults = {
    DefaultTile{2, split_tile(8, 2, true)},
    DefaultTile{8, split_tile(16, 2, true)},
    DefaultTile{18, split_tile(32, 2, true)},
    DefaultTile{48, split_tile(64, 2, true)},
    DefaultTile{160, whole_tile(80, true)},
    DefaultTile{320, whole_tile(96, false)},
    DefaultTile{std::numeric_limits<double>::infinity(), token_rows_tile(1, false)},
};

constexpr CudaScheme tensor_scheme(const char* enumerator, TensorScale kind) {
  CudaScheme s = e4m3_scheme(enumerator);
  s.serves = &serves;
  s.numerics = &waiting_numerics;
  s.scales = WeightScales::matrix;
  s.tensor_scale = kind;
  s.defaults = defaults;
  return s;
}

constexpr CudaScheme dynamic = tensor_scheme("fp8_tensor", TensorScale::from_amax);
constexpr CudaScheme calibrated = tensor_scheme("fp8_tensor_static", TensorScale::given);

const CudaScheme* format(const SchemeTraits& traits) {
  return traits.activation.static_scale ? &calibrated : &dynamic;
}

}  // namespace

const CudaScheme& fp8_tensor_scheme() {
  static constexpr CudaScheme family = [] {
    CudaScheme s = dynamic;
    s.format = &format;
    return s;
  }();
  return family;
}

}  // namespace moegauge::cuda
