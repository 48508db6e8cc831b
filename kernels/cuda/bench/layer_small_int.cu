// Odd shapes with every kind of integer weights: ragged K and N, groups that do not fill a step.
#include "kernels/cuda/bench/variant.cuh"

namespace bench {
namespace {
using moe::Scheme;
template <Scheme kScheme, int kTile, bool kSplit, int kGroup, bool kZero, bool kOrdered>
using C = moe::LayerConfig<kScheme, 5, 336, 192, 3, false, kTile, 3, false, kSplit, false, false, 1, kGroup, kZero, kOrdered>;

template <Scheme kScheme, int kGroup, bool kZero, bool kOrdered>
void add(std::vector<Layer>& layers, std::vector<Variant>& variants, const char* name) {
  layers.push_back({name, kScheme, 8, 5, 336, 192, 3, false, kGroup, kZero, kOrdered});
  variants.push_back(make_variant<C<kScheme, 8, true, kGroup, kZero, kOrdered>>(name));
  variants.push_back(make_variant<C<kScheme, 48, true, kGroup, kZero, kOrdered>>(name));
  variants.push_back(make_variant<C<kScheme, kScheme == Scheme::w4a16 ? 96 : 80, false, kGroup, kZero, kOrdered>>(name));
}
}  // namespace
void add_small_int(std::vector<Layer>& layers, std::vector<Variant>& variants) {
  add<Scheme::w4a16, 128, false, false>(layers, variants, "small-w4-g128");
  add<Scheme::w4a16, 64, true, false>(layers, variants, "small-w4-g64-zp");
  add<Scheme::w4a16, 32, true, true>(layers, variants, "small-w4-g32-zp-order");
  add<Scheme::w8a16, 128, true, true>(layers, variants, "small-w8-g128-zp-order");
  add<Scheme::w8a16, 32, false, false>(layers, variants, "small-w8-g32");
}
}  // namespace bench
