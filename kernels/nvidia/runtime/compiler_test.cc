#include "kernels/nvidia/runtime/compiler.h"

#include <gtest/gtest.h>

namespace moegauge::cuda {
namespace {

CompileRequest request(std::string text) {
  return {.main = {"kernel.cu", std::move(text)},
          .includes = {},
          .options = {"-std=c++17", "-Xptxas=-v"},
          .arch = "sm_90a",
          .kernels = {"scale"}};
}

#define SKIP_WITHOUT_NVRTC() \
  if (const auto version = compiler_version(); !version) GTEST_SKIP() << version.error().sentence

TEST(Compiler, MakesMachineCodeForHopper) {
  SKIP_WITHOUT_NVRTC();
  const auto cubin = compile(request("__global__ void scale(float* x) { x[threadIdx.x] *= 2.f; }"));
  ASSERT_TRUE(cubin.has_value()) << cubin.error().log;
  // A cubin is an ELF file for machine 190 (EM_CUDA, elf.h).
  ASSERT_GT(cubin->image.size(), 20u);
  EXPECT_EQ(cubin->image.substr(0, 4),
            "\x7f"
            "ELF");
  EXPECT_EQ(static_cast<unsigned char>(cubin->image[18]), 190);
  EXPECT_GT(resources_in(cubin->log).registers, 0) << cubin->log;
}

TEST(Compiler, NamesTheInstantiationsThatWereAskedFor) {
  SKIP_WITHOUT_NVRTC();
  CompileRequest asked = request("template <int N> __global__ void scale(float* x) { x[0] *= N; }");
  asked.kernels = {"scale<3>", "scale<5>"};
  const auto cubin = compile(asked);
  ASSERT_TRUE(cubin.has_value()) << cubin.error().log;
  // Itanium C++ ABI: template argument 3 of type int is mangled Li3E.
  ASSERT_EQ(cubin->names.size(), 2u);
  EXPECT_NE(cubin->names[0].find("ILi3E"), std::string::npos) << cubin->names[0];
  EXPECT_NE(cubin->names[1].find("ILi5E"), std::string::npos) << cubin->names[1];
}

TEST(Compiler, GivesTheFirstErrorAndTheWholeLog) {
  SKIP_WITHOUT_NVRTC();
  const auto cubin = compile(request("__global__ void scale(float* x) { x[0] = nowhere; }"));
  ASSERT_FALSE(cubin.has_value());
  EXPECT_NE(cubin.error().sentence.find("kernel.cu(1)"), std::string::npos)
      << cubin.error().sentence;
  EXPECT_NE(cubin.error().sentence.find("nowhere"), std::string::npos);
  EXPECT_GE(cubin.error().log.size(), cubin.error().sentence.size());
}

TEST(Compiler, FindsIncludesByTheNameTheyAreGiven) {
  SKIP_WITHOUT_NVRTC();
  CompileRequest asked =
      request("#include \"a/b.cuh\"\n__global__ void scale(float* x) { x[0] = two; }");
  asked.includes = {{"a/b.cuh", "#pragma once\n__device__ constexpr float two = 2.f;\n"}};
  EXPECT_TRUE(compile(asked).has_value());
}

// Lines as ptxas 13.0 prints them.
TEST(ResourceUse, ReadsRegistersStackAndSpills) {
  const ResourceUse use = resources_in(
      "ptxas info    : Compiling entry function 'a' for 'sm_90a'\n"
      "ptxas info    : Function properties for a\n"
      "    16 bytes stack frame, 24 bytes spill stores, 40 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 1 barriers, 16 bytes cumulative stack size\n");
  EXPECT_EQ(use.registers, 168);
  EXPECT_EQ(use.stack_bytes, 16);
  EXPECT_EQ(use.spill_stores_bytes, 24);
  EXPECT_EQ(use.spill_loads_bytes, 40);
  EXPECT_FALSE(use.serialized_wgmma);
}

TEST(ResourceUse, NoticesSerialisedWgmma) {
  EXPECT_TRUE(resources_in("ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async "
                           "instructions are serialized due to ill formed pipeline stage")
                  .serialized_wgmma);
}

}  // namespace
}  // namespace moegauge::cuda
