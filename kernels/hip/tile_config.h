// The tiles that there are kernels for, and configs that name one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/hip/architecture.h"
#include "kernels/hip/layer_format.h"

namespace moegauge::hip {

// See LayerConfig in device/config.h. `group`: token tiles that take turns at a weight tile.
struct Tile {
  int tokens = 0, columns = 0, waves = 0, dim = 0, depth = 0, group = 4;
  friend bool operator==(const Tile&, const Tile&) = default;
};

// Compiled for this format, from few tokens to many; `group` is the default.
std::vector<Tile> tiles(const Architecture& architecture, const LayerFormat& format);

// "gate_up_block_fp8_t64_c128_w4_d16_s2": a kernel's name in the code object.
std::string gemm_name(const char* phase, const LayerFormat& format, const Tile& tile);

// The rule of thumb without a tuned file, by rows an expert. Not measured: nobody has had the
// hardware.
Tile default_tile(const Architecture& architecture, const LayerFormat& format, const Layer& layer,
                  std::int64_t tokens);
Config to_config(const Tile& tile, const LayerFormat& format);
Expected<Tile, Refusal> parse_config(const Architecture& architecture, const LayerFormat& format,
                                     const Layer& layer, std::int64_t tokens, const Config& config);

}  // namespace moegauge::hip
