#include "variant.cuh"

namespace bench {
namespace {
template <int kTile, int kStages, bool kSplit, bool kRows = false>
using C = moe::LayerConfig<moe::Scheme::bf16, 8, 4096, 7168, 2, false, kTile, kStages, false, kSplit, kRows>;
}
void add_mixtral(std::vector<Layer>& layers, std::vector<Variant>& variants) {
  layers.push_back({"mixtral-8x7b", moe::Scheme::bf16, 8, 8, 4096, 7168, 2, false});
  const char* name = "mixtral-8x7b";
  variants.push_back(make_variant<C<8, 6, true>>(name));
  variants.push_back(make_variant<C<16, 6, true>>(name));
  variants.push_back(make_variant<C<32, 5, true>>(name));
  variants.push_back(make_variant<C<64, 5, true>>(name));
  variants.push_back(make_variant<C<128, 4, true>>(name));
  variants.push_back(make_variant<C<8, 6, false>>(name));
  variants.push_back(make_variant<C<16, 6, false>>(name));
  variants.push_back(make_variant<C<32, 5, false>>(name));
  variants.push_back(make_variant<C<64, 5, false>>(name));
  variants.push_back(make_variant<C<128, 4, false>>(name));
  variants.push_back(make_variant<C<128, 4, false, true>>(name));
  variants.push_back(make_variant<C<192, 3, false>>(name));
}
}  // namespace bench
