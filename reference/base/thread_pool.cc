#include "reference/base/thread_pool.h"

#include <algorithm>
#include <utility>

#include "reference/base/process_limits.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace moegauge {
namespace {

constexpr std::uint64_t kInside = 0xFFFF;
constexpr std::uint64_t kOpen = std::uint64_t{1} << 16;
constexpr std::uint64_t kStop = std::uint64_t{1} << 17;
constexpr std::uint64_t kJob = std::uint64_t{1} << 18;

// The pool whose loop this thread is inside, and the thread's number there.
thread_local const ThreadPool* inside_pool = nullptr;
thread_local int inside_thread = 0;

class InsideGuard {
 public:
  InsideGuard(const ThreadPool* pool, int thread) : pool_(inside_pool), thread_(inside_thread) {
    inside_pool = pool;
    inside_thread = thread;
  }
  ~InsideGuard() {
    inside_pool = pool_;
    inside_thread = thread_;
  }
  InsideGuard(const InsideGuard&) = delete;
  InsideGuard& operator=(const InsideGuard&) = delete;

 private:
  const ThreadPool* pool_;
  int thread_;
};

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

// Spins until done() or the time is over; true if done.
template <typename Done>
bool spin_until(std::chrono::microseconds limit, const Done& done) {
  if (done()) return true;
  if (limit.count() == 0) return false;
  const auto end = std::chrono::steady_clock::now() + limit;
  do {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace

int ThreadPool::usable_processors() { return moegauge::usable_processors(); }

ThreadPool::ThreadPool(int threads, std::chrono::microseconds spin)
    : threads_(std::clamp(threads, 1, 4096)),
      spin_(threads_ > usable_processors() ? std::chrono::microseconds(0) : spin),
      claims_(static_cast<std::size_t>(threads_)) {
  workers_.reserve(static_cast<std::size_t>(threads_ - 1));
  for (int t = 1; t < threads_; ++t) workers_.emplace_back([this, t] { thread_main(t); });
}

ThreadPool::~ThreadPool() {
  state_.fetch_or(kStop);
  wake();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::run(std::int64_t n, Schedule schedule, std::int64_t grain, Body body,
                     void* context) {
  if (n <= 0) return;
  if (inside_pool == this) {
    body(context, 0, n, inside_thread);
    return;
  }
  const std::scoped_lock turn(submit_);
  job_ = {.body = body, .context = context, .n = n, .grain = std::max<std::int64_t>(grain, 1)};
  if (schedule != Schedule::dynamic) {
    job_.runs = std::min<std::int64_t>(n, threads_);
    job_.whole_runs = schedule == Schedule::contiguous;
    for (auto& claim : claims_) claim.taken.store(0, std::memory_order_relaxed);
  }
  next_.store(0, std::memory_order_relaxed);
  cancelled_.store(false, std::memory_order_relaxed);

  const bool shared = threads_ > 1 && n > 1;
  if (shared) open_job();
  work(0);
  if (shared) close_job();
  if (job_.error) std::rethrow_exception(std::exchange(job_.error, nullptr));
}

void ThreadPool::call(std::int64_t begin, std::int64_t end, int thread) {
  try {
    job_.body(job_.context, begin, end, thread);
  } catch (...) {
    cancelled_.store(true, std::memory_order_relaxed);
    const std::scoped_lock lock(error_mutex_);
    if (!job_.error) job_.error = std::current_exception();
  }
}

void ThreadPool::work(int thread) {
  const InsideGuard guard(this, thread);
  if (job_.runs == 0) {
    while (!cancelled_.load(std::memory_order_relaxed)) {
      const std::int64_t begin = next_.fetch_add(job_.grain, std::memory_order_relaxed);
      if (begin >= job_.n) return;
      call(begin, std::min(job_.n, begin + job_.grain), thread);
    }
    return;
  }
  for (std::int64_t i = 0; i < job_.runs; ++i) {
    const std::int64_t run = (thread + i) % job_.runs;
    const std::int64_t begin = job_.n * run / job_.runs, end = job_.n * (run + 1) / job_.runs;
    const std::int64_t step = job_.whole_runs ? end - begin : 1;
    auto& taken = claims_[static_cast<std::size_t>(run)].taken;
    while (!cancelled_.load(std::memory_order_relaxed)) {
      const std::int64_t at = begin + taken.fetch_add(step, std::memory_order_relaxed);
      if (at >= end) break;
      call(at, at + step, thread);
    }
  }
}

void ThreadPool::open_job() {
  // The previous job is closed and empty: nobody but stop can change the state here.
  state_.fetch_add(kJob | kOpen);
  wake();
}

void ThreadPool::close_job() {
  state_.fetch_and(~kOpen);
  const auto empty = [this] { return (state_.load() & kInside) == 0; };
  if (spin_until(spin_, empty)) return;
  std::unique_lock lock(sleep_mutex_);
  sleepers_.fetch_add(1);
  sleep_.wait(lock, empty);
  sleepers_.fetch_sub(1);
}

// Sleepers announce themselves before they look at the state again, and the state is changed before
// sleepers are looked for (all sequentially consistent), so one of the two sees the other.
void ThreadPool::wake() {
  if (sleepers_.load() == 0) return;
  { const std::scoped_lock lock(sleep_mutex_); }
  sleep_.notify_all();
}

std::uint64_t ThreadPool::wait_for_change(std::uint64_t seen) {
  std::uint64_t now = 0;
  const auto changed = [&] {
    now = state_.load();
    return (now & kStop) != 0 || ((now & kOpen) != 0 && now / kJob != seen);
  };
  if (spin_until(spin_, changed)) return now;
  std::unique_lock lock(sleep_mutex_);
  sleepers_.fetch_add(1);
  sleep_.wait(lock, changed);
  sleepers_.fetch_sub(1);
  return now;
}

void ThreadPool::thread_main(int thread) {
  std::uint64_t seen = 0;
  while (true) {
    std::uint64_t now = wait_for_change(seen);
    if ((now & kStop) != 0) return;
    // Joins the job unless it closes first; the number rules out that another job is meant.
    bool joined = false;
    while ((now & kOpen) != 0 && !(joined = state_.compare_exchange_weak(now, now + 1))) {
    }
    if (!joined) continue;
    seen = now / kJob;
    work(thread);
    const std::uint64_t after = state_.fetch_sub(1) - 1;
    if ((after & kInside) == 0 && (after & kOpen) == 0) wake();
  }
}

}  // namespace moegauge
