#include "kernels/cuda/bench/variant.cuh"

namespace bench {
namespace {
template <int kTile, int kStages, bool kSplit, bool kRows = false, bool kPairs = false, int kDealt = 1>
using C = moe::LayerConfig<moe::Scheme::fp8_block, 32, 7168, 2048, 8, false, kTile, kStages, true, kSplit, kRows, kPairs, kDealt>;
}  // namespace
void add_deepseek(std::vector<Layer>& layers, std::vector<Variant>& variants) {
  const char* name = "deepseek-v3";
  layers.push_back({name, moe::Scheme::fp8_block, 256, 32, 7168, 2048, 8, false});
  variants.push_back(make_variant<C<8, 4, true, false, false, 2>>(name));
  variants.push_back(make_variant<C<16, 4, true, false, false, 2>>(name));
  variants.push_back(make_variant<C<32, 4, true, false, false, 2>>(name));
  variants.push_back(make_variant<C<48, 4, true, false, false, 2>>(name));
  variants.push_back(make_variant<C<64, 4, true, false, false, 2>>(name));
  variants.push_back(make_variant<C<80, 4, false>>(name));
  variants.push_back(make_variant<C<128, 4, false, true>>(name));
  variants.push_back(make_variant<C<128, 4, false, true, true>>(name));
}
}  // namespace bench
