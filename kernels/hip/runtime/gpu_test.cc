// The host side against a HIP runtime whose device is the emulator: what it calls, that it gives
// everything back, and what it says where something is missing. On no GPU: docs/amd.md.
#include "kernels/hip/runtime/gpu.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "kernels/hip/layer_plan.h"
#include "kernels/hip/runtime/fake_hip_testing.h"
#include "reference/inputs.h"

namespace moegauge::hip {
namespace {

using testing::HasSubstr;

class OnAFakeRuntime : public testing::Test {
 protected:
  OnAFakeRuntime() {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/moegauge_hip_gfx942.co") << "code";
  }
  ~OnAFakeRuntime() override { std::filesystem::remove_all(folder_); }

  std::shared_ptr<const Gpu> open() {
    auto opened = open_gpu(api_, folder_);
    EXPECT_TRUE(opened.has_value()) << opened.error();
    return opened ? *opened : nullptr;
  }
  std::string missing() {
    const auto opened = open_gpu(api_, folder_);
    return opened ? "nothing" : opened.error();
  }

  std::string folder_ = testing::TempDir() + "moegauge_gpu_test";
  FakeHip& fake_ = fake_hip();
  Expected<HipApi, std::string> api_ = fake_hip_api();
};

TEST_F(OnAFakeRuntime, ADeviceIsDescribed) {
  const auto gpu = open();
  ASSERT_NE(gpu, nullptr);
  EXPECT_EQ(gpu->architecture().name, "gfx942");
  EXPECT_EQ(gpu->description().name, "AMD Instinct fake");
  EXPECT_EQ(gpu->description().runtime, "hip 6.2");
  EXPECT_EQ(gpu->description().memory_bytes, std::int64_t{1} << 30);
}

TEST_F(OnAFakeRuntime, WhatIsMissingIsASentence) {
  EXPECT_EQ(
      open_gpu(Unexpected{std::string("no runtime (libamdhip64.so not found)")}, folder_).error(),
      "no runtime (libamdhip64.so not found)");
  fake_.devices = 0;
  EXPECT_THAT(missing(),
              HasSubstr("runtime without a device (hipGetDeviceCount: hipErrorNoDevice"));
  fake_.devices = 1;
  fake_.architecture = "gfx90a:sramecc+:xnack-";
  EXPECT_EQ(missing(),
            "AMD Instinct fake is gfx90a:sramecc+:xnack-; there are kernels for gfx942, "
            "gfx950, gfx1201");
  fake_.architecture = "gfx1201";
  EXPECT_THAT(missing(), HasSubstr("built without device code (moegauge_hip_gfx1201.co"));
  EXPECT_EQ(fake_.things(), 0);
}

TEST_F(OnAFakeRuntime, ALayerRunsAlikeEagerlyAndAsAGraphAndGivesEverythingBack) {
  {
    const auto gpu = open();
    ASSERT_NE(gpu, nullptr);
    const Layer layer = {.experts = 4, .top_k = 2, .hidden_size = 128, .intermediate_size = 64};
    const Problem problem = {layer, std::shared_ptr<const Scheme>(make_scheme("fp8_ptpc")), 0};
    const auto experts = generated_experts(layer, problem.scheme, Distribution::gaussian, 1);
    const auto loaded =
        load_layer(gpu, problem, *format_of(problem, gpu->architecture()), *experts, 2, "code");
    const OwnedInputs in = generate_inputs(layer, Distribution::gaussian, {}, 3, 1, 0);
    auto plan = loaded->plan(3, {}, 1);
    ASSERT_TRUE(plan.has_value()) << plan.error().sentence;
    ASSERT_FALSE((*plan)->set_inputs(0, in.view()));
    const auto run = [&](const RunRequest& request) {
      EXPECT_FALSE((*plan)->poison());
      const auto seconds = (*plan)->run(request);
      EXPECT_TRUE(seconds.has_value()) << seconds.error().sentence;
      EXPECT_NEAR(seconds ? *seconds : 0, 2.5e-3, 1e-9);
      std::vector<std::uint16_t> y(in.x.size());
      EXPECT_FALSE((*plan)->fetch(0, y));
      return y;
    };
    const auto eager = run({});
    EXPECT_EQ(fake_.graph_launches, 0);
    EXPECT_TRUE(std::ranges::all_of(eager, [](auto bits) { return (bits & 0x7F80) != 0x7F80; }));
    EXPECT_EQ(run({.calls = 2, .launch = Launch::graph}), eager);
    EXPECT_GT(fake_.graph_launches, 0);
    fake_.launch_error = 999;
    const auto failed = (*plan)->run({.calls = 2, .launch = Launch::graph});
    ASSERT_FALSE(failed.has_value());
    EXPECT_THAT(failed.error().sentence, HasSubstr("hipModuleLaunchKernel"));
    fake_.launch_error = hip_success;
    EXPECT_EQ(run({}), eager);
  }
  EXPECT_EQ(fake_.things(), 0);
  EXPECT_EQ(fake_.bad_handles, 0);
}

TEST_F(OnAFakeRuntime, AFullDeviceIsAFaultOfItsOwnKind) {
  const auto gpu = open();
  fake_.malloc_error = hip_out_of_memory;
  const auto fault = guarded([&] { gpu->allocate(1); });
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->kind, FaultKind::out_of_memory);
  EXPECT_EQ(fault->sentence, "hipMalloc: hipErrorOutOfMemory (as the test asked)");
}

TEST(HipProperties, TheArchitectureIsFoundWhereverARelaseHasPutIt) {
  const std::string zeros(700, '\0');
  EXPECT_EQ(architecture_in("AMD Instinct MI300X" + zeros + "gfx942:sramecc+:xnack-" + zeros),
            "gfx942:sramecc+:xnack-");
  EXPECT_EQ(architecture_in(zeros + "gfx1201" + zeros), "gfx1201");
  EXPECT_EQ(architecture_in("gfx" + zeros), "");
  EXPECT_EQ(architecture_in(zeros), "");
}

TEST(HipApi, ALibraryWithoutItsFunctionsIsNamedByTheFirst) {
  HipApi api = {};
  void* self = dlopen(nullptr, RTLD_NOW);
  EXPECT_EQ(bind_hip_api(self, api), "hipRuntimeGetVersion");
  dlclose(self);
}

}  // namespace
}  // namespace moegauge::hip
