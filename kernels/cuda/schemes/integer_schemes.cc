#include "kernels/cuda/schemes/integer_schemes.h"

#include <algorithm>

namespace moegauge::cuda {
namespace {

constexpr std::int64_t whole_row = 0;  // of ScaleUnit
constexpr std::array<std::int64_t, 4> groups = {32, 64, 128, whole_row};
constexpr std::int64_t packed_whole_row = 128;  // its scale is repeated for groups of this

IntFormat format_of(const SchemeTraits& traits, int bits) {
  const std::int64_t group = traits.weight.unit.cols;
  return {.bits = bits,
          .group = group == whole_row ? packed_whole_row : group,
          .per_channel = group == whole_row,
          .zero_points = traits.weight.zero_points,
          .ordered = traits.weight.group_index};
}

// A group's products are summed by themselves and multiplied by its scale in fp32: no weight is
// rounded, so nothing has to be declared for them.
}  // namespace

bool serves_integers(const SchemeTraits& traits, Element element) {
  const OperandTraits& w = traits.weight;
  return w.element == element && traits.activation.element == Element::activation_dtype &&
         w.scale == ScaleKind::activation_dtype && w.unit.rows == 1 &&
         std::ranges::find(groups, w.unit.cols) != groups.end();
}

IntegerSchemes make_integer_schemes(const char* enumerator, int bits,
                                    std::span<const DefaultTile> defaults) {
  IntegerSchemes schemes = {};
  for (std::size_t i = 0; i < schemes.size(); ++i) {
    const std::int64_t group = groups[i / 4];
    schemes[i] = {.enumerator = enumerator,
                  .element_bytes = 2,
                  .least_capability = 90,
                  .serves = nullptr,
                  .numerics = &fp32_numerics,
                  .may_promote = false,
                  .must_promote = false,
                  .scales = WeightScales::none,
                  .wide_activations = false,
                  .defaults = defaults,
                  .integers = IntFormat{.bits = bits,
                                        .group = group == whole_row ? packed_whole_row : group,
                                        .per_channel = group == whole_row,
                                        .zero_points = i % 2 == 1,
                                        .ordered = i / 2 % 2 == 1}};
  }
  return schemes;
}

const CudaScheme* find_integers(const IntegerSchemes& schemes, const SchemeTraits& traits) {
  const IntFormat wanted = format_of(traits, schemes[0].integers->bits);
  const auto found =
      std::ranges::find(schemes, wanted, [](const CudaScheme& s) { return *s.integers; });
  return found == schemes.end() ? nullptr : &*found;
}

}  // namespace moegauge::cuda
