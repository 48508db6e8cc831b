// Configs by AMD's keys: which tiles they name, and how what names none is refused.
#include "kernels/hip/tile_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace moegauge::hip {
namespace {

const Layer qwen3 = {.experts = 128, .top_k = 8, .hidden_size = 2048, .intermediate_size = 768};

LayerFormat format_named(const char* scheme, const Architecture& architecture) {
  return *format_of({qwen3, std::shared_ptr<const Scheme>(make_scheme(scheme)), 0}, architecture);
}

TEST(TileConfig, OffersTilesOfEveryFormatOnEveryArchitecture) {
  for (const Architecture& a : architectures()) {
    for (const char* scheme : {"bf16", "fp8_block", "fp8_ptpc", "fp8_tensor", "w8a8_int8"}) {
      const LayerFormat format = format_named(scheme, a);
      const std::vector<Tile> all = tiles(a, format);
      ASSERT_GE(all.size(), 3u) << a.name << " " << scheme;
      for (const Tile& tile : all) {
        const auto again = parse_config(a, format, qwen3, 16, to_config(tile, format));
        ASSERT_TRUE(again.has_value()) << again.error().sentence;
        EXPECT_EQ(*again, tile);
      }
    }
  }
}

TEST(TileConfig, DefaultsGrowWithTheRowsOfAnExpert) {
  for (const Architecture& a : architectures()) {
    const LayerFormat format = format_named("fp8_block", a);
    EXPECT_EQ(default_tile(a, format, qwen3, 1).tokens, 16);
    EXPECT_EQ(default_tile(a, format, qwen3, 16).tokens, 16);
    EXPECT_EQ(default_tile(a, format, qwen3, 4096).tokens, 64);
    int last = 0;
    for (std::int64_t tokens = 1; tokens <= 8192; tokens *= 2) {
      const int now = default_tile(a, format, qwen3, tokens).tokens;
      EXPECT_GE(now, last);
      last = now;
    }
  }
}

TEST(TileConfig, PartOfTheKeysIsEnough) {
  const Architecture& a = *find_architecture("gfx942");
  const LayerFormat format = format_named("fp8_block", a);
  const auto tile =
      parse_config(a, format, qwen3, 1, {{{"matrix_instr_nonkdim", 32}, {"GROUP_SIZE_M", 8}}});
  ASSERT_TRUE(tile.has_value()) << tile.error().sentence;
  EXPECT_EQ(tile->dim, 32);
  EXPECT_EQ(tile->group, 8);
}

TEST(TileConfig, WhatWasNotCompiledIsRefusedWithWhatWas) {
  const Architecture& a = *find_architecture("gfx1201:");
  const LayerFormat format = format_named("fp8_block", a);
  const auto absent = parse_config(a, format, qwen3, 1, {{{"matrix_instr_nonkdim", 32}}});
  ASSERT_FALSE(absent.has_value());
  EXPECT_EQ(absent.error().reason, RefusalReason::config_value);
  EXPECT_THAT(absent.error().sentence,
              testing::AllOf(testing::HasSubstr("gfx1201"), testing::HasSubstr("BLOCK_SIZE_M=64")));
  const auto unknown = parse_config(a, format, qwen3, 1, {{{"num_warp", 8}}});
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().reason, RefusalReason::config_unknown_key);
  EXPECT_THAT(unknown.error().sentence, testing::HasSubstr("num_warps"));
  const auto group = parse_config(a, format, qwen3, 1, {{{"GROUP_SIZE_M", 0}}});
  ASSERT_FALSE(group.has_value());
  EXPECT_THAT(group.error().sentence, testing::HasSubstr("1..64"));
}

}  // namespace
}  // namespace moegauge::hip
