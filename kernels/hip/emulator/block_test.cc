// What the emulator promises of blocks: order, barriers, waves, and the faults that a GPU would
// keep to itself. Each kernel here is a few lines whose result can be told by hand.
#include "kernels/hip/emulator/block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/hip/emulator/gpu.h"

namespace moegauge::emulator {
namespace {

namespace gpu = moe::gpu;

Grid grid_of(int blocks, int threads, int lanes, std::uint64_t seed = 0) {
  return {.blocks = blocks, .threads = threads, .lanes = lanes, .shared_limit = 4096, .seed = seed};
}

std::string fault_of(const Grid& grid, const std::function<void()>& kernel) {
  try {
    run_grid(grid, kernel);
  } catch (const KernelFault& fault) {
    return fault.what();
  }
  return "";
}

TEST(EmulatedGrid, RunsEveryThreadOfEveryBlockOnce) {
  std::vector<int> runs(3 * 96);
  for (const std::uint64_t seed : {0u, 1u, 2u}) {
    std::ranges::fill(runs, 0);
    run_grid(grid_of(3, 96, 32, seed),
             [&] { ++runs[static_cast<std::size_t>(gpu::block() * 96 + gpu::thread())]; });
    EXPECT_EQ(runs, std::vector<int>(runs.size(), 1));
  }
}

TEST(EmulatedGrid, DrawsTheOrderOfThreadsAndBlocksFromTheSeed) {
  const auto order = [](std::uint64_t seed) {
    std::vector<int> seen;
    run_grid(grid_of(2, 32, 32, seed), [&] { seen.push_back(gpu::block() * 32 + gpu::thread()); });
    return seen;
  };
  std::vector<int> own(64);
  std::iota(own.begin(), own.end(), 0);
  EXPECT_EQ(order(0), own);
  EXPECT_NE(order(1), own);
  EXPECT_NE(order(1), order(2));
  EXPECT_EQ(order(1), order(1));
}

TEST(EmulatedBlock, LetsNoThreadPastABarrierBeforeAllHaveCome) {
  for (const std::uint64_t seed : {0u, 5u}) {
    int arrived = 0;
    std::vector<int> seen(2 * 64);
    run_grid(grid_of(1, 64, 64, seed), [&] {
      const auto self = static_cast<std::size_t>(gpu::thread());
      ++arrived;
      gpu::sync();
      seen[2 * self] = arrived;
      gpu::sync();
      ++arrived;
      gpu::sync_shared();
      seen[2 * self + 1] = arrived;
    });
    for (std::size_t i = 0; i < 64; ++i) {
      EXPECT_EQ(seen[2 * i], 64);
      EXPECT_EQ(seen[2 * i + 1], 128);
    }
  }
}

TEST(EmulatedBlock, GivesItsThreadsOneMemoryThatHoldsNaN) {
  std::vector<float> before, after;
  run_grid(grid_of(2, 32, 32), [&] {
    struct Shared {
      float value;
    };
    MOE_LDS(Shared, lds);
    if (gpu::thread() == 0) before.push_back(lds.value);
    gpu::sync();
    if (gpu::thread() == 31) lds.value = 3;
    gpu::sync();
    if (gpu::thread() == 7) after.push_back(lds.value);
  });
  EXPECT_THAT(before, testing::ElementsAre(testing::IsNan(), testing::IsNan()));
  EXPECT_THAT(after, testing::ElementsAre(3, 3));
}

TEST(EmulatedBlock, RefusesMoreMemoryThanTheArchitectureHas) {
  EXPECT_THAT(fault_of(grid_of(1, 32, 32),
                       [] {
                         struct Shared {
                           char bytes[5000];
                         };
                         MOE_LDS(Shared, lds);
                         lds.bytes[0] = 1;
                       }),
              testing::AllOf(testing::HasSubstr("5000"), testing::HasSubstr("4096")));
}

TEST(EmulatedWave, ExchangesValuesWithinEachWave) {
  for (const int lanes : {32, 64}) {
    for (const std::uint64_t seed : {0u, 3u}) {
      std::vector<int> up(128), from(128), flipped(128), first(128);
      run_grid(grid_of(1, 128, lanes, seed), [&] {
        const int t = gpu::thread();
        const auto at = static_cast<std::size_t>(t);
        up[at] = __shfl_up(t, 3, 32);
        from[at] = __shfl(t, 5, 32);
        flipped[at] = static_cast<int>(gpu::shuffle_xor(static_cast<unsigned>(t), 16));
        first[at] = gpu::uniform(t / lanes);
      });
      for (int t = 0; t < 128; ++t) {
        const auto at = static_cast<std::size_t>(t);
        EXPECT_EQ(up[at], t % 32 < 3 ? t : t - 3);
        EXPECT_EQ(from[at], t / 32 * 32 + 5);
        EXPECT_EQ(flipped[at], t % 32 < 16 ? t + 16 : t - 16);
        EXPECT_EQ(first[at], t / lanes);
      }
    }
  }
}

TEST(EmulatedBlock, NamesABarrierThatSomeThreadsNeverReach) {
  EXPECT_THAT(fault_of(grid_of(1, 64, 32),
                       [] {
                         if (gpu::thread() < 40) gpu::sync();
                       }),
              testing::AllOf(testing::HasSubstr("thread 40 has finished"),
                             testing::HasSubstr("waits at the barrier of block_test.cc:")));
}

// Outside of the macros below, within which all lines are one.
void waits_here_or_there() {
  if (gpu::thread() < 32) {
    gpu::sync();
  } else {
    gpu::sync();
  }
}
void shuffles_here_or_there() {
  if (gpu::thread() % 2 == 0) {
    gpu::shuffle_xor(1, 1);
  } else {
    gpu::shuffle_xor(1, 1);
  }
}

TEST(EmulatedBlock, NamesTwoBarriersThatThreadsWaitAt) {
  EXPECT_THAT(fault_of(grid_of(1, 64, 32), &waits_here_or_there),
              testing::HasSubstr("cannot go on: thread 32 waits at the barrier of"));
}

TEST(EmulatedWave, NamesLanesThatPartWays) {
  EXPECT_THAT(fault_of(grid_of(1, 64, 64), &shuffles_here_or_there),
              testing::HasSubstr("part ways"));
}

TEST(EmulatedWave, NamesLanesThatNeverCome) {
  EXPECT_THAT(fault_of(grid_of(1, 64, 64),
                       [] {
                         if (gpu::thread() < 50) gpu::shuffle_xor(1, 1);
                       }),
              testing::HasSubstr("waits for its wave at block_test.cc:"));
}

TEST(EmulatedWave, FaultsWhereAUniformValueIsNone) {
  EXPECT_THAT(fault_of(grid_of(1, 64, 64), [] { gpu::uniform(gpu::thread() / 33); }),
              testing::HasSubstr("where the first lane of its wave has 0"));
}

// A missing barrier: what a thread reads depends on whether its neighbour has been there.
TEST(EmulatedBlock, GivesARaceAwayByTheSeed) {
  const auto result = [](std::uint64_t seed) {
    std::vector<int> values(64), copied(64);
    run_grid(grid_of(1, 64, 64, seed), [&] {
      const auto t = static_cast<std::size_t>(gpu::thread());
      values[t] = gpu::thread();
      copied[t] = values[(t + 1) % 64];
    });
    return copied;
  };
  EXPECT_NE(result(1), result(2));
}

TEST(EmulatedBlock, GoesOnAfterAFault) {
  EXPECT_NE(fault_of(grid_of(1, 64, 64),
                     [] {
                       if (gpu::thread() == 0) gpu::sync();
                     }),
            "");
  int ran = 0;
  EXPECT_EQ(fault_of(grid_of(1, 64, 64),
                     [&] {
                       gpu::sync();
                       ++ran;
                     }),
            "");
  EXPECT_EQ(ran, 64);
}

}  // namespace
}  // namespace moegauge::emulator
