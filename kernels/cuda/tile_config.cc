#include "kernels/cuda/tile_config.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "kernels/cuda/tile_rows.h"
#include "kernels/nvidia/device/layer_args.h"

namespace moegauge::cuda {
namespace {

// Widths for which kernels/nvidia/device/wgmma.cuh has an instruction and the kernels a tile.
constexpr std::array token_tiles = {8, 16, 24, 32, 48, 64, 80, 96, 128, 144, 160, 176, 192};
constexpr int widest_split_tile = 64;  // partial sums are kept for tiles up to this

// The sums of both boxes and of one group of one box fit in registers up to this.
int widest_integer_tile(const IntFormat& format) { return format.bits == 4 ? 96 : 80; }
constexpr int widest_microscaling_tile = 64;  // and the sums of one instruction for each box

struct Key {
  std::string_view name;
  std::int64_t (*get)(const TileConfig&);
  void (*set)(TileConfig&, std::int64_t);
  std::int64_t least, most;
};

constexpr std::array<Key, 7> keys = {{
    {"BLOCK_SIZE_M", [](const TileConfig& c) { return std::int64_t{c.token_tile}; },
     [](TileConfig& c, std::int64_t v) { c.token_tile = static_cast<int>(v); }, 8, 192},
    {"num_stages", [](const TileConfig& c) { return std::int64_t{c.stages}; },
     [](TileConfig& c, std::int64_t v) { c.stages = static_cast<int>(v); }, 2, 12},
    {"SPLIT_K", [](const TileConfig& c) { return std::int64_t{c.split_k}; },
     [](TileConfig& c, std::int64_t v) { c.split_k = v != 0; }, 0, 1},
    {"SWAP_AB", [](const TileConfig& c) { return std::int64_t{c.swap_ab}; },
     [](TileConfig& c, std::int64_t v) { c.swap_ab = v != 0; }, 0, 1},
    {"CLUSTER_SIZE", [](const TileConfig& c) { return std::int64_t{c.cluster}; },
     [](TileConfig& c, std::int64_t v) { c.cluster = static_cast<int>(v); }, 1, 2},
    {"DEALT", [](const TileConfig& c) { return std::int64_t{c.dealt}; },
     [](TileConfig& c, std::int64_t v) { c.dealt = static_cast<int>(v); }, 1, 1000},
    {"PROMOTE", [](const TileConfig& c) { return std::int64_t{c.promote}; },
     [](TileConfig& c, std::int64_t v) { c.promote = v != 0; }, 0, 1},
}};

std::string key_names() {
  std::string names;
  for (const Key& key : keys) names += (names.empty() ? "" : ", ") + std::string(key.name);
  return names;
}

Refusal bad_value(std::string sentence) {
  return {RefusalReason::config_value, std::move(sentence)};
}

// What the kernels' static assertions say, as sentences.
std::optional<Refusal> contradiction(const TileConfig& c, const Layer& layer,
                                     const CudaScheme& scheme) {
  if (std::ranges::find(token_tiles, c.token_tile) == token_tiles.end()) {
    return bad_value(
        "BLOCK_SIZE_M is " + std::to_string(c.token_tile) +
        "; the kernels have tiles of 8, 16, 24, 32, 48, 64, 80, 96, 128, 144, 160, 176 and 192 "
        "tokens");
  }
  if (!c.swap_ab && (c.token_tile != 128 || c.split_k)) {
    return bad_value(
        "SWAP_AB 0 (tokens on the matrix instruction's 64-row side) needs BLOCK_SIZE_M "
        "128 and SPLIT_K 0, not " +
        std::to_string(c.token_tile) + " and " + std::to_string(c.split_k));
  }
  if (scheme.integers) {
    const int most = widest_integer_tile(*scheme.integers);
    if (!c.swap_ab || c.token_tile > most) {
      return bad_value("integer weights need SWAP_AB 1 and BLOCK_SIZE_M of at most " +
                       std::to_string(most) + " (registers for sums), not " +
                       std::to_string(c.swap_ab) + " and " + std::to_string(c.token_tile));
    }
  }
  if (scheme.microscaling() &&
      (!c.swap_ab || c.token_tile > widest_microscaling_tile || c.cluster != 1)) {
    return bad_value(
        "scales for 32 columns need SWAP_AB 1, CLUSTER_SIZE 1 and BLOCK_SIZE_M of at most " +
        std::to_string(widest_microscaling_tile) + " (registers for sums), not " +
        std::to_string(c.swap_ab) + ", " + std::to_string(c.cluster) + " and " +
        std::to_string(c.token_tile));
  }
  if (!c.swap_ab && scheme.block_scales() &&
      (layer.intermediate_size % 128 != 0 || layer.gate_up_order == GateUpOrder::interleaved)) {
    return bad_value(
        "SWAP_AB 0 with block scales needs gate and up concatenated and an intermediate size that "
        "is a multiple of 128, not " +
        std::to_string(layer.intermediate_size));
  }
  if (c.split_k && c.token_tile > widest_split_tile) {
    return bad_value("SPLIT_K 1 keeps partial sums for at most " +
                     std::to_string(widest_split_tile) + " tokens a tile; BLOCK_SIZE_M is " +
                     std::to_string(c.token_tile));
  }
  const std::int64_t tiles1 = ceil_div(padded_inter(layer), 128);
  const std::int64_t tiles2 = ceil_div(layer.hidden_size, 256);
  if (c.cluster == 2 && (c.split_k || scheme.integers || tiles1 % 2 != 0 || tiles2 % 2 != 0)) {
    return bad_value(
        "CLUSTER_SIZE 2 needs SPLIT_K 0, weights that are not integers and even numbers of weight "
        "tiles; this layer has " +
        std::to_string(tiles1) + " and " + std::to_string(tiles2));
  }
  if (c.promote && !scheme.may_promote) {
    return bad_value("PROMOTE 1 is for FP8; this scheme's sums are fp32 as they are");
  }
  if (!c.promote && scheme.must_promote) {
    return bad_value("PROMOTE 0 is impossible here: block scales change along K");
  }
  return std::nullopt;
}

}  // namespace

std::int64_t shared_bytes(const Layer& layer, const CudaScheme& scheme, const TileConfig& c) {
  const std::int64_t tile = c.token_tile;
  const std::int64_t stage =
      scheme.integers
          ? align_up(static_cast<std::int64_t>(chunk_bytes(*scheme.integers)), 1024) + tile * 256
          : box_chunk_bytes(scheme.scales) + tile * 128;
  const std::int64_t groups = tile_rows / scale_rows(layer.intermediate_size, layer.gate_up_order);
  const std::int64_t scale = scheme.microscaling()   ? 4 * tile * 4
                             : scheme.block_scales() ? align_up(groups * 4 + tile * 4, 16)
                                                     : 0;
  const std::int64_t staged = std::min<std::int64_t>(tile, 64);
  const std::int64_t plain = 2 * staged * 128, quantised = tile * 144;
  const std::int64_t staging = scheme.block_scales() || scheme.microscaling() || !c.swap_ab
                                   ? std::max(plain, quantised)
                                   : plain;
  const std::int64_t maxima = scheme.microscaling() ? 12 : scheme.block_scales() ? 8 : 0;
  const std::int64_t epilogue = staging + (3 + maxima) * tile * 4;
  const std::int64_t tables = align_up((layer.local_experts() + 1) * 12 + 24, 16);
  const std::int64_t barriers =
      c.stages * stage + align_up(epilogue, 16) + c.stages * scale + tables + c.stages * 16;
  const std::int64_t pairs = c.cluster == 2 ? c.stages * 8 : 0;
  return align_up(barriers, 64) + 2 * 64 + 2 * 16 + 2 * 16 + pairs + 1024;
}

AloneRoom alone_room(const Layer& layer, const CudaScheme& scheme, const TileConfig& c) {
  const std::int64_t columns = scheme.integers ? 128 : 128 / scheme.element_bytes;  // of a step
  const std::int64_t x = ceil_div(layer.hidden_size, columns) * columns * scheme.element_bytes;
  const std::int64_t groups = ceil_div(layer.hidden_size, 128);
  const std::int64_t scales = scheme.microscaling()                 ? 4 * groups
                              : scheme.block_scales()               ? groups
                              : scheme.scales == WeightScales::none ? 0
                                                                    : 1;
  const bool channels = scales == 1 && !scheme.block_scales();
  const std::int64_t h = channels ? ceil_div(padded_inter(layer), 128) * 128 : 0;
  const std::int64_t bytes = align_up(shared_bytes(layer, scheme, c) - 1024, 1024) + 1024 +
                             c.token_tile * (h + x + 4) + 4 * moe::kInsidePairs * 4 + 64 +
                             moe::kAloneTokens * scales * 4;
  const bool ordered = scheme.integers && scheme.integers->ordered;
  if (!c.swap_ab || c.cluster != 1 || ordered || c.token_tile > 16 || bytes > moe::kSharedLimit ||
      scheme.tensor_scale == TensorScale::from_amax) {
    return {};
  }
  const std::int64_t tokens =
      std::min<std::int64_t>(moe::kAloneTokens, moe::kAloneColumns / layer.hidden_size);
  if (tokens < 1) return {};
  return {.tokens = tokens, .shared_bytes = bytes};
}

std::int64_t shared_bytes_of_launch(const Layer& layer, const CudaScheme& scheme,
                                    const TileConfig& c, std::int64_t tokens) {
  return is_alone(layer, scheme, c, tokens) ? alone_room(layer, scheme, c).shared_bytes
                                            : shared_bytes(layer, scheme, c);
}

bool is_alone(const Layer& layer, const CudaScheme& scheme, const TileConfig& c,
              std::int64_t tokens) {
  // Of wide tokens two are made at once; a second round costs what a kernel less saves.
  const bool rounds = layer.hidden_size > 4096 && tokens > 2;
  const std::int64_t room = alone_room(layer, scheme, c).tokens;  // 0: not for this kind of tile
  return !rounds && tokens * layer.top_k <= moe::kInsidePairs && room > 0 && tokens <= room;
}

namespace {

// The error function needs registers that wide tiles with promoted sums do not have.
TileConfig fitted(TileConfig c, const Layer& layer) {
  if (layer.activation.kind == ActivationKind::gelu_and_mul && c.swap_ab && c.promote) {
    c.token_tile = std::min(c.token_tile, widest_split_tile);
  }
  return c;
}

}  // namespace

TileConfig heuristic_config(const Layer& layer, const CudaScheme& scheme, std::int64_t tokens) {
  const double rows =
      static_cast<double>(tokens * layer.top_k) / static_cast<double>(layer.experts);
  TileConfig c = std::ranges::find_if(scheme.defaults, [rows](const DefaultTile& entry) {
                   return rows <= entry.rows;
                 })->tile;
  if (!contradiction(c, layer, scheme)) return fitted(c, layer);
  // Shapes that clusters, or tokens on the 64-row side, do not serve.
  c.cluster = 1;
  if (!contradiction(c, layer, scheme)) return fitted(c, layer);
  c.token_tile = scheme.integers         ? widest_integer_tile(*scheme.integers)
                 : scheme.microscaling() ? widest_microscaling_tile
                                         : 96;
  c.swap_ab = true;
  return fitted(c, layer);
}

Config to_config(const TileConfig& config) {
  Config result;
  for (const Key& key : keys) result.values[std::string(key.name)] = key.get(config);
  return result;
}

Expected<TileConfig, Refusal> parse_config(const Config& config, const Layer& layer,
                                           const CudaScheme& scheme, std::int64_t tokens,
                                           std::int64_t shared_limit) {
  TileConfig c = heuristic_config(layer, scheme, tokens);
  for (const auto& [name, value] : config.values) {
    const auto key = std::ranges::find(keys, std::string_view(name), &Key::name);
    if (key == keys.end()) {
      return Unexpected{
          Refusal{RefusalReason::config_unknown_key,
                  "the cuda backend has no config key " + name + "; it has " + key_names()}};
    }
    if (value < key->least || value > key->most) {
      return Unexpected{bad_value(name + " is " + std::to_string(value) + "; it must lie in [" +
                                  std::to_string(key->least) + ", " + std::to_string(key->most) +
                                  "]")};
    }
    key->set(c, value);
  }
  if (auto refusal = contradiction(c, layer, scheme)) return Unexpected{*refusal};
  const std::int64_t bytes = shared_bytes(layer, scheme, c);
  if (bytes > shared_limit) {
    return Unexpected{bad_value(std::to_string(c.stages) + " stages of " +
                                std::to_string(c.token_tile) + " tokens need " +
                                std::to_string(bytes) + " bytes of shared memory; a block has " +
                                std::to_string(shared_limit))};
  }
  return c;
}

namespace {

constexpr std::array deals = {1, 2, 4, 1000};

// Steps from one tile to another, one for each neighbouring width, depth and so on: what is one
// step away is tried along every axis before anything is two away.
std::ptrdiff_t steps(const TileConfig& a, const TileConfig& b) {
  const auto between = [](const auto& values, int from, int to) {
    return std::abs(std::ranges::find(values, from) - std::ranges::find(values, to));
  };
  return between(token_tiles, a.token_tile, b.token_tile) + std::abs(a.stages - b.stages) +
         between(deals, a.dealt, b.dealt) + (a.split_k != b.split_k) + (a.swap_ab != b.swap_ab) +
         (a.cluster != b.cluster) + (a.promote != b.promote);
}

}  // namespace

std::vector<TileConfig> candidate_tiles(const Layer& layer, const CudaScheme& scheme,
                                        std::int64_t tokens, std::int64_t shared_limit) {
  const TileConfig start = heuristic_config(layer, scheme, tokens);
  std::vector<TileConfig> found;
  const auto consider = [&](const TileConfig& c) {
    const bool fits = shared_bytes(layer, scheme, c) <= shared_limit;
    if (fits && fitted(c, layer) == c && !contradiction(c, layer, scheme)) found.push_back(c);
  };
  for (const int tile : token_tiles) {
    for (int stages = 2; stages <= 12; ++stages) {
      for (const int dealt : deals) {
        // Sums that leave the tensor core more seldom are another kernel's rounding.
        for (int flags = start.promote ? 8 : 0; flags < 16; ++flags) {
          consider({.token_tile = tile,
                    .stages = stages,
                    .split_k = (flags & 1) != 0,
                    .swap_ab = (flags & 2) != 0,
                    .cluster = (flags & 4) != 0 ? 2 : 1,
                    .dealt = dealt,
                    .promote = (flags & 8) != 0});
        }
      }
    }
  }
  std::ranges::stable_sort(found, {}, [&](const TileConfig& c) { return steps(c, start); });
  return found;
}

}  // namespace moegauge::cuda
