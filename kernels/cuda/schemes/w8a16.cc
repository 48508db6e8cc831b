// Int8 weights in groups of columns with 16-bit scales and activations.
#include <limits>

#include "kernels/cuda/schemes/integer_schemes.h"

namespace moegauge::cuda {
namespace {

struct Int8 {
  static constexpr const char* enumerator = "w8a16";
  static constexpr Element element = Element::int8;
  static constexpr int bits = 8;
  // Not measured: the four-bit ones with as many stages as fit.
  static constexpr std::array defaults = {
      DefaultTile{5, integer_tile(8, 5)},
      DefaultTile{9, integer_tile(16, 5)},
      DefaultTile{18, integer_tile(24, 4)},
      DefaultTile{40, integer_tile(48, 4)},
      DefaultTile{std::numeric_limits<double>::infinity(), integer_whole_tile(80, 3, 1)},
  };
};

}  // namespace

const CudaScheme& w8a16_scheme() { return integer_family<Int8>(); }

}  // namespace moegauge::cuda
