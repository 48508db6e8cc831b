#include "reference/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace moegauge {
namespace {

using std::chrono::microseconds;

constexpr Schedule kSchedules[] = {Schedule::dynamic, Schedule::contiguous, Schedule::streams};

class ThreadPoolTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 3, 8));

TEST_P(ThreadPoolTest, EveryIndexIsVisitedOnceWhateverTheSchedule) {
  ThreadPool pool(GetParam());
  for (const auto schedule : kSchedules) {
    for (const std::int64_t n : {0, 1, 2, 5, 64, 1001}) {
      for (const std::int64_t grain : {1, 7}) {
        std::vector<int> visits(static_cast<std::size_t>(n), 0);
        pool.parallel_for(
            n, [&](std::int64_t i) { ++visits[static_cast<std::size_t>(i)]; }, schedule, grain);
        EXPECT_EQ(visits, std::vector<int>(static_cast<std::size_t>(n), 1));
      }
    }
  }
}

TEST_P(ThreadPoolTest, ManyShortLoopsInARowLoseNothing) {
  // spin 0 sends the threads to sleep between loops, which exercises waking.
  for (const auto spin : {microseconds(0), microseconds(20)}) {
    ThreadPool pool(GetParam(), spin);
    std::vector<std::int64_t> sums(static_cast<std::size_t>(pool.threads()), 0);
    for (int round = 0; round < 3000; ++round) {
      pool.parallel_for(
          4, [&](std::int64_t i, int thread) { sums[static_cast<std::size_t>(thread)] += i; },
          kSchedules[round % 3]);
    }
    EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), std::int64_t{0}), 3000 * (0 + 1 + 2 + 3));
  }
}

TEST_P(ThreadPoolTest, ThreadNumbersAreInRangeAndNeverSharedAtOneTime) {
  ThreadPool pool(GetParam());
  std::vector<std::atomic<int>> inside(static_cast<std::size_t>(pool.threads()));
  std::atomic<bool> shared = false;
  pool.parallel_for(2000, [&](std::int64_t, int thread) {
    auto& here = inside.at(static_cast<std::size_t>(thread));
    if (here.fetch_add(1) != 0) shared = true;
    here.fetch_sub(1);
  });
  EXPECT_FALSE(shared);
}

TEST_P(ThreadPoolTest, AnExceptionReachesTheCallerAndThePoolGoesOn) {
  ThreadPool pool(GetParam());
  for (const auto schedule : kSchedules) {
    const auto fail = [](std::int64_t i) {
      if (i == 13) throw std::runtime_error("index 13");
    };
    try {
      pool.parallel_for(100, fail, schedule);
      FAIL() << "nothing thrown";
    } catch (const std::runtime_error& e) {
      EXPECT_EQ(std::string(e.what()), "index 13");
    }
    std::atomic<int> count = 0;
    pool.parallel_for(
        100, [&](std::int64_t) { ++count; }, schedule);
    EXPECT_EQ(count, 100);
  }
}

TEST_P(ThreadPoolTest, ANestedLoopRunsOnTheThreadThatAskedForIt) {
  ThreadPool pool(GetParam());
  std::atomic<int> count = 0;
  std::atomic<bool> elsewhere = false;
  pool.parallel_for(10, [&](std::int64_t, int outer) {
    pool.parallel_for(10, [&](std::int64_t, int inner) {
      if (inner != outer) elsewhere = true;
      ++count;
    });
  });
  EXPECT_EQ(count, 100);
  EXPECT_FALSE(elsewhere);
}

TEST_P(ThreadPoolTest, CallersOnSeveralThreadsTakeTurns) {
  ThreadPool pool(GetParam());
  std::int64_t total = 0;  // unguarded: only the pool's turns protect it
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        std::atomic<int> count = 0;
        pool.parallel_for(8, [&](std::int64_t i) {
          if (i == 0) ++total;
          ++count;
        });
        EXPECT_EQ(count, 8);
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(total, 800);
}

TEST(ThreadPool, MoreThreadsThanProcessorsServeShortLoops) {
  ThreadPool pool(64);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> visits = 0;
    pool.parallel_for(3, [&](std::int64_t) { ++visits; });
    ASSERT_EQ(visits, 3);
  }
}

TEST(ThreadPool, ContiguousRunsDivideTheRange) {
  ThreadPool pool(3);
  std::vector<int> owner(10, -1);
  pool.parallel_for(
      10, [&](std::int64_t i, int thread) { owner[static_cast<std::size_t>(i)] = thread; },
      Schedule::contiguous);
  // Runs are [0,3) [3,6) [6,10): whoever takes a run takes all of it.
  EXPECT_EQ(owner[0], owner[2]);
  EXPECT_EQ(owner[3], owner[5]);
  EXPECT_EQ(owner[6], owner[9]);
}

TEST(ThreadPool, ThereIsAtLeastOneUsableProcessor) {
  EXPECT_GE(ThreadPool::usable_processors(), 1);
}

}  // namespace
}  // namespace moegauge
