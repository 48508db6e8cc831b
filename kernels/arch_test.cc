#include "kernels/arch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace moegauge {
namespace {

using testing::HasSubstr;

std::string obstacle(std::string_view arch, std::string_view scheme) {
  return operand_obstacle(*arch_family(arch), make_scheme(scheme)->traits()).value_or("");
}

TEST(Arch, FamiliesAreFoundByTheNamesThatCompilersUse) {
  for (const char* arch : {"gfx940", "gfx941", "gfx94x"}) {
    ASSERT_NE(arch_family(arch), nullptr) << arch;
    EXPECT_EQ(arch_family(arch)->name, "gfx94x");
  }
  EXPECT_EQ(arch_family("gfx942")->name, "gfx942");
  EXPECT_EQ(arch_family("gfx1200")->name, "gfx120x");
  EXPECT_EQ(arch_family("sm_89")->fp8, Fp8Flavour::ocp);
  EXPECT_EQ(arch_family("sm_80")->fp8, Fp8Flavour::none);
  EXPECT_EQ(arch_family("sm_100")->native_mx, true);
  for (const char* none : {"", "gfx94", "gfx9420", "sm_9", "H200", "MI300X", "GFX942"}) {
    EXPECT_EQ(arch_family(none), nullptr) << none;
  }
}

// What public work on these families found (MXFP8 on gfx94x through conversion to block FP8 in
// FNUZ, on gfx950 natively; block FP8 on gfx120x; PTPC on gfx94x).
TEST(Arch, MxScalesAreNativeOnSomeFamiliesAndConvertedOnOthers) {
  EXPECT_THAT(obstacle("gfx942", "mxfp8"),
              HasSubstr("no MX matrix instructions; convert the weights: moegauge convert IN OUT "
                        "--to fp8_block --flavor fnuz"));
  EXPECT_EQ(obstacle("gfx950", "mxfp8"), "");
  EXPECT_THAT(obstacle("gfx1201", "mxfp8"), HasSubstr("--flavor ocp"));
  EXPECT_THAT(obstacle("sm_90", "mxfp8"), HasSubstr("--flavor ocp"));
  EXPECT_EQ(obstacle("sm_100", "mxfp8"), "");
}

TEST(Arch, Fp8MustBeInTheFamilysFlavour) {
  for (const std::string scheme : {"fp8_ptpc", "fp8_block", "fp8_tensor"}) {
    EXPECT_EQ(obstacle("gfx942", scheme + "_fnuz"), "") << scheme;
    EXPECT_THAT(obstacle("gfx942", scheme), HasSubstr("ask for the scheme's option _fnuz"));
    EXPECT_EQ(obstacle("gfx950", scheme), "");
    EXPECT_EQ(obstacle("gfx1201", scheme), "");
    EXPECT_THAT(obstacle("gfx950", scheme + "_fnuz"), HasSubstr("its FP8 is OCP"));
    EXPECT_THAT(obstacle("sm_80", scheme), HasSubstr("no FP8 matrix instructions"));
    EXPECT_EQ(obstacle("cpu", scheme + "_fnuz"), "") << "a CPU decodes whatever it is given";
  }
}

TEST(Arch, WeightsThatAreDecodedNeedNoFp8) {
  for (const char* scheme : {"bf16", "w4a16_g128", "w8a16_g128", "mxfp4", "w8a8_int8"}) {
    for (const ArchFamily& family : arch_families()) {
      EXPECT_EQ(operand_obstacle(family, make_scheme(scheme)->traits()), std::nullopt)
          << scheme << " on " << family.name;
    }
  }
}

// Nobody has had an AMD GPU: docs/amd.md.
TEST(Arch, KernelsForAmdGpusSayHowFarTheyWereProven) {
  int amd = 0;
  for (const ArchFamily& family : arch_families()) {
    if (family.lanes == 0 || !family.has_kernels || family.matrix == "wgmma") continue;
    ++amd;
    EXPECT_THAT(std::string(family.proven), HasSubstr("never yet run on such a device"))
        << family.name;
  }
  EXPECT_EQ(amd, 3);
}

TEST(Arch, SaysWhatAFamilyCanDo) {
  EXPECT_EQ(capabilities(*arch_family("gfx942")), "MFMA, waves of 64, FP8 as FNUZ, no native MX");
  EXPECT_EQ(capabilities(*arch_family("gfx950")), "MFMA, waves of 64, FP8 as OCP, native MX");
  EXPECT_EQ(capabilities(*arch_family("gfx1201")), "WMMA, waves of 32, FP8 as OCP, no native MX");
}

}  // namespace
}  // namespace moegauge
