#include "kernels/cuda/bench/variant.cuh"

namespace bench {
namespace {
template <int kTile, int kStages, bool kSplit, int kDealt = 1000>
using C = moe::LayerConfig<moe::Scheme::w4a16, 8, 4096, 7168, 2, false, kTile, kStages, false, kSplit, false, false, kDealt, 128>;
}  // namespace
void add_mixtral_int(std::vector<Layer>& layers, std::vector<Variant>& variants) {
  const char* name = "mixtral-8x7b-w4a16";
  layers.push_back({name, moe::Scheme::w4a16, 8, 8, 4096, 7168, 2, false, 128});
  variants.push_back(make_variant<C<8, 8, true>>(name));
  variants.push_back(make_variant<C<16, 8, true>>(name));
  variants.push_back(make_variant<C<24, 7, true>>(name));
  variants.push_back(make_variant<C<32, 6, true>>(name));
  variants.push_back(make_variant<C<48, 5, true>>(name));
  variants.push_back(make_variant<C<64, 5, true>>(name));
  variants.push_back(make_variant<C<80, 4, false>>(name));
  variants.push_back(make_variant<C<96, 3, false, 1>>(name));
}
}  // namespace bench
