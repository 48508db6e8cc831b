#include "kernels/cuda/bench/variant.cuh"

namespace bench {
namespace {
template <bool kPromote, int kTile, int kStages, bool kSplit, bool kRows = false, bool kPairs = false, int kDealt = 1>
using C = moe::LayerConfig<moe::Scheme::fp8_ptpc, 16, 5120, 2048, 1, true, kTile, kStages, kPromote, kSplit, kRows, kPairs, kDealt>;
}  // namespace
void add_scout(std::vector<Layer>& layers, std::vector<Variant>& variants) {
  const char* name = "llama-4-scout";
  layers.push_back({name, moe::Scheme::fp8_ptpc, 16, 16, 5120, 2048, 1, true});
  variants.push_back(make_variant<C<true, 8, 4, true, false, false, 2>>(name));
  variants.push_back(make_variant<C<true, 16, 4, true, false, false, 2>>(name));
  variants.push_back(make_variant<C<true, 32, 4, true, false, false, 2>>(name));
  variants.push_back(make_variant<C<true, 64, 4, true, false, false, 2>>(name));
  variants.push_back(make_variant<C<true, 80, 4, false>>(name));
  variants.push_back(make_variant<C<true, 96, 4, false>>(name));
  variants.push_back(make_variant<C<true, 80, 4, false, false, true>>(name));
  variants.push_back(make_variant<C<true, 96, 4, false, false, true>>(name));
  variants.push_back(make_variant<C<true, 128, 4, false, true>>(name));
  variants.push_back(make_variant<C<true, 128, 4, false, true, true>>(name));
  variants.push_back(make_variant<C<false, 8, 4, true, false, false, 2>>(name));
  variants.push_back(make_variant<C<false, 16, 4, true, false, false, 2>>(name));
  variants.push_back(make_variant<C<false, 32, 4, true, false, false, 2>>(name));
  variants.push_back(make_variant<C<false, 64, 4, true, false, false, 2>>(name));
  variants.push_back(make_variant<C<false, 80, 4, false>>(name));
  variants.push_back(make_variant<C<false, 96, 4, false>>(name));
  variants.push_back(make_variant<C<false, 144, 4, false>>(name));
  variants.push_back(make_variant<C<false, 160, 3, false>>(name));
  variants.push_back(make_variant<C<false, 176, 3, false>>(name));
  variants.push_back(make_variant<C<false, 128, 4, false, true>>(name));
  variants.push_back(make_variant<C<false, 128, 4, false, true, true>>(name));
}
}  // namespace bench
