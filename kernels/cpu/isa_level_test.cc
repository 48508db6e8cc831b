// Names and choice of instruction sets.
#include "kernels/cpu/isa_level.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace moegauge::cpu {
namespace {

TEST(IsaLevels, AreNamedAndOrdered) {
  for (const IsaLevel level : all_isa_levels()) EXPECT_EQ(isa_level_from(to_string(level)), level);
  EXPECT_EQ(isa_level_from("avx9"), std::nullopt);
  EXPECT_TRUE(supported(IsaLevel::portable));
  EXPECT_TRUE(supported(best_isa_level()));
  if (!supported(IsaLevel::avx512_bf16)) {
    GTEST_SKIP() << "avx512_bf16 is not on this CPU: its kernels are compiled and not run";
  }
}

TEST(IsaLevels, FollowTheEnvironmentVariableAndSayWhatIsWrongWithIt) {
  const auto chosen = [](const char* value) {
    setenv(kIsaVariable, value, 1);
    auto level = chosen_isa_level();
    unsetenv(kIsaVariable);
    return level;
  };
  EXPECT_EQ(chosen("portable").value(), IsaLevel::portable);
  EXPECT_EQ(chosen("").value(), best_isa_level());
  EXPECT_EQ(chosen("avx9").error(),
            "MOEGAUGE_CPU_ISA=avx9 names no instruction-set level; portable, avx2, avx512 or "
            "avx512_bf16");
}

}  // namespace
}  // namespace moegauge::cpu
