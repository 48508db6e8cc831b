#include "variant.cuh"

namespace bench {
namespace {
template <int kTile, int kStages, bool kPromote, bool kSplit, bool kRows = false>
using C = moe::LayerConfig<moe::Scheme::fp8_ptpc, 16, 5120, 2048, 1, true, kTile, kStages, kPromote, kSplit, kRows>;
}
void add_scout(std::vector<Layer>& layers, std::vector<Variant>& variants) {
  layers.push_back({"llama-4-scout", moe::Scheme::fp8_ptpc, 16, 16, 5120, 2048, 1, true});
  const char* name = "llama-4-scout";
  variants.push_back(make_variant<C<8, 6, true, true>>(name));
  variants.push_back(make_variant<C<16, 6, true, true>>(name));
  variants.push_back(make_variant<C<32, 5, true, true>>(name));
  variants.push_back(make_variant<C<64, 5, true, true>>(name));
  variants.push_back(make_variant<C<8, 6, true, false>>(name));
  variants.push_back(make_variant<C<16, 6, true, false>>(name));
  variants.push_back(make_variant<C<32, 5, true, false>>(name));
  variants.push_back(make_variant<C<128, 4, true, false>>(name));
  variants.push_back(make_variant<C<128, 4, true, false, true>>(name));
  variants.push_back(make_variant<C<8, 6, false, true>>(name));
  variants.push_back(make_variant<C<16, 6, false, true>>(name));
  variants.push_back(make_variant<C<32, 5, false, true>>(name));
  variants.push_back(make_variant<C<64, 5, false, true>>(name));
  variants.push_back(make_variant<C<128, 4, false, false, true>>(name));
}
}  // namespace bench
