#include "kernels/hip/tile_config.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "kernels/hip/device/layer_args.h"

namespace moegauge::hip {
namespace {

struct Compiled {
  bool mfma;
  std::string_view format;
  Tile tile;
};

constexpr bool mfma = true, wmma = false;
#define MOE_GEMM(instructions, format, tokens, columns, waves, dim, depth) \
  Compiled{instructions, #format, {tokens, columns, waves, dim, depth}},
constexpr Compiled compiled[] = {
#include "kernels/hip/device/kernel_list.inc"
};
#undef MOE_GEMM

// Bytes of a step of the contracted dimension.
constexpr std::int64_t step_bytes = moe::kStepBytes;

struct Key {
  const char* name;
  std::int64_t (*value)(const Tile& tile, const LayerFormat& format);
};
// In the terms of AMD's Triton configs where there are such.
constexpr std::array keys = {
    Key{"BLOCK_SIZE_M", [](const Tile& t, const LayerFormat&) -> std::int64_t { return t.tokens; }},
    Key{"BLOCK_SIZE_N",
        [](const Tile& t, const LayerFormat&) -> std::int64_t { return t.columns; }},
    Key{"BLOCK_SIZE_K",
        [](const Tile&, const LayerFormat& f) { return step_bytes / f.element_bytes; }},
    Key{"GROUP_SIZE_M", [](const Tile& t, const LayerFormat&) -> std::int64_t { return t.group; }},
    Key{"num_warps", [](const Tile& t, const LayerFormat&) -> std::int64_t { return t.waves; }},
    Key{"num_stages", [](const Tile& t, const LayerFormat&) -> std::int64_t { return t.depth; }},
    // The compiler's own choice.
    Key{"waves_per_eu", [](const Tile&, const LayerFormat&) -> std::int64_t { return 0; }},
    Key{"matrix_instr_nonkdim",
        [](const Tile& t, const LayerFormat&) -> std::int64_t { return t.dim; }},
    // 16 bytes of K a lane and load.
    Key{"kpack", [](const Tile&, const LayerFormat&) -> std::int64_t { return 2; }},
};

std::string shown(const Tile& tile, const LayerFormat& format) {
  std::string text;
  for (const Key& key : keys) {
    if (std::string_view(key.name) == "GROUP_SIZE_M") continue;
    text += (text.empty() ? "" : " ") + std::string(key.name) + "=" +
            std::to_string(key.value(tile, format));
  }
  return text;
}

// Does the tile have every value that the config asks for?
bool agrees(const Tile& tile, const LayerFormat& format, const Config& config) {
  return std::ranges::all_of(keys, [&](const Key& key) {
    const auto asked = config.values.find(key.name);
    return asked == config.values.end() || asked->second == key.value(tile, format);
  });
}

}  // namespace

std::vector<Tile> tiles(const Architecture& architecture, const LayerFormat& format) {
  std::vector<Tile> found;
  for (const Compiled& c : compiled) {
    if (c.mfma == architecture.mfma && c.format == format.name) found.push_back(c.tile);
  }
  return found;
}

std::string gemm_name(const char* phase, const LayerFormat& format, const Tile& tile) {
  return std::string(phase) + "_" + format.name + "_t" + std::to_string(tile.tokens) + "_c" +
         std::to_string(tile.columns) + "_w" + std::to_string(tile.waves) + "_d" +
         std::to_string(tile.dim) + "_s" + std::to_string(tile.depth);
}

Tile default_tile(const Architecture& architecture, const LayerFormat& format, const Layer& layer,
                  std::int64_t tokens) {
  const double rows = static_cast<double>(tokens * layer.top_k) /
                      static_cast<double>(std::max<std::int64_t>(layer.experts, 1));
  const std::vector<Tile> all = tiles(architecture, format);
  // The smallest tile that holds most experts' rows, else the largest; the first of a size.
  Tile best = all.front();
  for (const Tile& tile : all) {
    if (tile.tokens > best.tokens && rows > 0.75 * best.tokens) best = tile;
  }
  return best;
}

Config to_config(const Tile& tile, const LayerFormat& format) {
  Config config;
  for (const Key& key : keys) config.values[key.name] = key.value(tile, format);
  return config;
}

Expected<Tile, Refusal> parse_config(const Architecture& architecture, const LayerFormat& format,
                                     const Layer& layer, std::int64_t tokens,
                                     const Config& config) {
  for (const auto& [name, value] : config.values) {
    if (std::ranges::find(keys, std::string_view(name), &Key::name) == keys.end()) {
      std::string known;
      for (const Key& key : keys) known += (known.empty() ? "" : ", ") + std::string(key.name);
      return Unexpected{Refusal{RefusalReason::config_unknown_key,
                                "the hip backend has no key " + name + "; it has " + known}};
    }
  }
  Config asked = config;
  Tile tile = default_tile(architecture, format, layer, tokens);
  if (const auto group = asked.values.find("GROUP_SIZE_M"); group != asked.values.end()) {
    if (group->second < 1 || group->second > 64) {
      return Unexpected{
          Refusal{RefusalReason::config_value,
                  "GROUP_SIZE_M is " + std::to_string(group->second) + "; it must lie in 1..64"}};
    }
    tile.group = static_cast<int>(group->second);
    asked.values.erase(group);
  }
  if (agrees(tile, format, asked)) return tile;
  std::string offered;
  for (Tile other : tiles(architecture, format)) {
    offered += "; " + shown(other, format);
    if (!agrees(other, format, asked)) continue;
    other.group = tile.group;
    return other;
  }
  return Unexpected{Refusal{RefusalReason::config_value,
                            "no kernel for " + std::string(architecture.name) +
                                " was compiled with these values; there are" + offered.substr(1)}};
}

}  // namespace moegauge::hip
