// Fixed threads that share loops. The caller works too, and nobody waits for a thread that has not
// started: a loop ends when its last index is done, also if other threads are still asleep.
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace moegauge {

enum class Schedule : std::uint8_t {
  dynamic,     // threads take `grain` indices at a time
  contiguous,  // [0, n) in one run per thread, thread t first taking run t: keeps caches and pages
               // with their thread; a run whose thread is late is taken by another
  streams,  // as contiguous, but taken index by index, so that a thread that is done with its run
            // helps with the others: for indices that read memory front to back
};

class ThreadPool {
 public:
  // `threads` > 0, the caller included, so that 1 starts none. Idle threads spin for `spin` before
  // they sleep; there is no spinning where `threads` exceeds the processors this process may use.
  explicit ThreadPool(int threads, std::chrono::microseconds spin = std::chrono::microseconds(50));
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Processors that this process may use (process_limits.h), at least 1.
  static int usable_processors();

  // Calls fn(index), or fn(index, thread) with thread in [0, threads()), for every index in [0, n),
  // and returns when all are done; what they wrote is then visible to the caller. No two calls that
  // run at the same time have the same `thread`. The first exception is rethrown here after the
  // loop has ended; indices not yet started are skipped. A call from inside a loop of the same pool
  // runs on the calling thread. Calls from several threads take turns.
  template <typename Fn>
  void parallel_for(std::int64_t n, Fn&& fn, Schedule schedule = Schedule::dynamic,
                    std::int64_t grain = 1) {
    using F = std::remove_reference_t<Fn>;
    const Body body = [](void* context, std::int64_t begin, std::int64_t end, int thread) {
      F& f = *static_cast<F*>(context);
      for (std::int64_t i = begin; i < end; ++i) {
        if constexpr (std::invocable<F&, std::int64_t, int>) {
          f(i, thread);
        } else {
          static_cast<void>(thread);
          f(i);
        }
      }
    };
    run(n, schedule, grain, body, const_cast<void*>(static_cast<const void*>(std::addressof(fn))));
  }

 private:
  using Body = void (*)(void* context, std::int64_t begin, std::int64_t end, int thread);

  // One loop. Written by the submitter before the state opens, read by threads that have joined.
  struct Job {
    Body body = nullptr;
    void* context = nullptr;
    std::int64_t n = 0;
    std::int64_t grain = 1;              // dynamic: indices per claim
    std::int64_t runs = 0;               // contiguous, streams: number of runs; 0 for dynamic
    bool whole_runs = false;             // contiguous: a run is one claim
    std::exception_ptr error = nullptr;  // guarded by error_mutex_
  };
  struct alignas(64) Claim {              // of a run
    std::atomic<std::int64_t> taken = 0;  // indices from its front
  };

  void run(std::int64_t n, Schedule schedule, std::int64_t grain, Body body, void* context);
  void work(int thread);
  void call(std::int64_t begin, std::int64_t end, int thread);
  void open_job();
  void close_job();
  void thread_main(int thread);
  std::uint64_t wait_for_change(std::uint64_t seen);
  void wake();

  const int threads_;
  const std::chrono::microseconds spin_;

  std::mutex submit_;  // held for the length of a loop
  Job job_;
  std::mutex error_mutex_;
  std::vector<Claim> claims_;

  // Bits 0..15: threads inside the job; bit 16: open; bit 17: stop; above: number of the job.
  alignas(64) std::atomic<std::uint64_t> state_ = 0;
  alignas(64) std::atomic<std::int64_t> next_ = 0;   // dynamic: first index not claimed
  alignas(64) std::atomic<bool> cancelled_ = false;  // an index threw
  alignas(64) std::atomic<int> sleepers_ = 0;        // threads (or the caller) in sleep_
  std::mutex sleep_mutex_;
  std::condition_variable sleep_;

  std::vector<std::thread> workers_;
};

}  // namespace moegauge
