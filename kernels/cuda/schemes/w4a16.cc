// Int4 weights in groups of columns with 16-bit scales and activations.
#include <limits>

#include "kernels/cuda/schemes/integer_schemes.h"

namespace moegauge::cuda {
namespace {

struct Int4 {
  static constexpr const char* enumerator = "w4a16";
  static constexpr Element element = Element::int4;
  static constexpr int bits = 4;
  static constexpr std::array defaults = {
      DefaultTile{5, integer_tile(8, 8)},
      DefaultTile{9, integer_tile(16, 8)},
      DefaultTile{18, integer_tile(24, 7)},
      DefaultTile{40, integer_tile(48, 5)},
      DefaultTile{72, integer_whole_tile(80, 4, 1000)},
      DefaultTile{128, integer_tile(64, 5)},
      DefaultTile{std::numeric_limits<double>::infinity(), integer_whole_tile(96, 3, 1)},
  };
};

}  // namespace

const CudaScheme& w4a16_scheme() { return integer_family<Int4>(); }

}  // namespace moegauge::cuda
