// What the tests of a level's functions share.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/isa/kernel_table.h"
#include "kernels/cpu/isa_level.h"

namespace moegauge::cpu {

// The instruction sets that this machine runs.
inline std::vector<IsaLevel> supported_levels() {
  std::vector<IsaLevel> levels;
  for (const IsaLevel level : all_isa_levels()) {
    if (supported(level)) levels.push_back(level);
  }
  return levels;
}

inline std::string level_name(const testing::TestParamInfo<IsaLevel>& info) {
  return std::string(to_string(info.param));
}

// A test on every level's table.
class LevelTest : public testing::TestWithParam<IsaLevel> {
 protected:
  const KernelTable& table() const { return kernels(GetParam()); }
};

// Every bf16 value; the floats halfway between neighbours and the ones beside those, where rounding
// turns; and random bit patterns.
inline std::vector<float> interesting_floats() {
  std::vector<float> values;
  for (std::uint32_t upper = 0; upper < 65536; ++upper) {
    for (const std::uint32_t lower : {0x0000u, 0x7FFFu, 0x8000u, 0x8001u}) {
      values.push_back(std::bit_cast<float>((upper << 16) | lower));
    }
  }
  std::mt19937 engine(1);
  for (int i = 0; i < 100'003; ++i) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(engine())));
  }
  return values;
}

}  // namespace moegauge::cpu
