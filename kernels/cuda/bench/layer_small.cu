// Odd shapes that no model has: ragged K, N that ends inside a tile, few experts.
#include "kernels/cuda/bench/variant.cuh"

namespace bench {
namespace {
using moe::Scheme;
template <int kTile, int kStages, bool kSplit>
using Block = moe::LayerConfig<Scheme::fp8_block, 5, 320, 192, 3, false, kTile, kStages, true, kSplit>;
template <int kTile, int kStages, bool kPromote, bool kSplit>
using Ptpc = moe::LayerConfig<Scheme::fp8_ptpc, 3, 336, 192, 1, true, kTile, kStages, kPromote, kSplit>;
template <int kTile, int kStages, bool kSplit>
using Bf16 = moe::LayerConfig<Scheme::half, 4, 320, 192, 2, false, kTile, kStages, false, kSplit>;
}  // namespace
void add_small(std::vector<Layer>& layers, std::vector<Variant>& variants) {
  layers.push_back({"small-block", Scheme::fp8_block, 8, 5, 320, 192, 3, false});
  variants.push_back(make_variant<Block<8, 3, true>>("small-block"));
  variants.push_back(make_variant<Block<32, 4, true>>("small-block"));
  variants.push_back(make_variant<Block<64, 3, false>>("small-block"));
  variants.push_back(make_variant<Block<96, 3, false>>("small-block"));
  variants.push_back(make_variant<Block<128, 3, false>>("small-block"));
  layers.push_back({"small-rows", Scheme::fp8_block, 8, 5, 320, 384, 3, false});
  variants.push_back(make_variant<moe::LayerConfig<Scheme::fp8_block, 5, 320, 384, 3, false, 128, 3, true, false, true>>("small-rows"));
  variants.push_back(make_variant<moe::LayerConfig<Scheme::fp8_block, 5, 320, 384, 3, false, 16, 3, true, true>>("small-rows"));
  // Pairs need even numbers of weight tiles.
  layers.push_back({"small-pairs", Scheme::fp8_block, 8, 5, 496, 256, 3, false});
  variants.push_back(make_variant<moe::LayerConfig<Scheme::fp8_block, 5, 496, 256, 3, false, 128, 3, true, false, true, true>>("small-pairs"));
  layers.push_back({"small-pairs-ptpc", Scheme::fp8_ptpc, 4, 4, 496, 256, 1, true});
  variants.push_back(make_variant<moe::LayerConfig<Scheme::fp8_ptpc, 4, 496, 256, 1, true, 128, 3, true, false, true, true>>("small-pairs-ptpc"));
  layers.push_back({"small-pairs-bf16", Scheme::half, 4, 4, 496, 256, 2, false});
  variants.push_back(make_variant<moe::LayerConfig<Scheme::half, 4, 496, 256, 2, false, 128, 3, false, false, true, true>>("small-pairs-bf16"));
  layers.push_back({"small-ptpc", Scheme::fp8_ptpc, 3, 3, 336, 192, 1, true});
  variants.push_back(make_variant<Ptpc<16, 3, true, true>>("small-ptpc"));
  variants.push_back(make_variant<Ptpc<64, 3, false, false>>("small-ptpc"));
  variants.push_back(make_variant<moe::LayerConfig<Scheme::fp8_ptpc, 3, 336, 192, 1, true, 128, 3, true, false, true>>("small-ptpc"));
  variants.push_back(make_variant<moe::LayerConfig<Scheme::fp8_ptpc, 3, 336, 192, 1, true, 128, 3, false, false, true>>("small-ptpc"));
  layers.push_back({"small-bf16", Scheme::half, 4, 4, 320, 192, 2, false});
  variants.push_back(make_variant<Bf16<8, 3, true>>("small-bf16"));
  variants.push_back(make_variant<Bf16<48, 3, true>>("small-bf16"));
  variants.push_back(make_variant<Bf16<128, 3, false>>("small-bf16"));
  variants.push_back(make_variant<moe::LayerConfig<Scheme::half, 4, 320, 192, 2, false, 128, 3, false, false, true>>("small-bf16"));
}
}  // namespace bench
