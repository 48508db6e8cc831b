#include "kernels/cuda/bench/variant.cuh"

namespace bench {
namespace {
template <int kTile, int kStages, bool kSplit, bool kRows = false, bool kPairs = false, int kDealt = 1>
using C = moe::LayerConfig<moe::Scheme::half, 8, 4096, 7168, 2, false, kTile, kStages, false, kSplit, kRows, kPairs, kDealt>;
}  // namespace
void add_mixtral(std::vector<Layer>& layers, std::vector<Variant>& variants) {
  const char* name = "mixtral-8x7b";
  layers.push_back({name, moe::Scheme::half, 8, 8, 4096, 7168, 2, false});
  variants.push_back(make_variant<C<8, 4, true>>(name));
  variants.push_back(make_variant<C<16, 4, true>>(name));
  variants.push_back(make_variant<C<32, 4, true, false, false, 1000>>(name));
  variants.push_back(make_variant<C<48, 4, true, false, false, 1000>>(name));
  variants.push_back(make_variant<C<64, 4, true, false, false, 1000>>(name));
  variants.push_back(make_variant<C<96, 4, false>>(name));
  variants.push_back(make_variant<C<128, 4, false>>(name));
  variants.push_back(make_variant<C<80, 4, false>>(name));
  variants.push_back(make_variant<C<144, 4, false>>(name));
  variants.push_back(make_variant<C<160, 3, false>>(name));
  variants.push_back(make_variant<C<176, 3, false>>(name));
  variants.push_back(make_variant<C<192, 3, false>>(name));
  variants.push_back(make_variant<C<128, 4, false, true, true>>(name));
}
}  // namespace bench
