#include "kernels/hip/emulator/block.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "kernels/hip/emulator/fiber.h"
#include "kernels/hip/emulator/gpu.h"
#include "kernels/hip/emulator/matrix.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) static_cast<void>(address)
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) static_cast<void>(address)
#endif

namespace moegauge::emulator {
namespace {

using moe::gpu::Place;

enum class State : std::uint8_t { ready, at_barrier, in_wave, finished };

struct Thread {
  State state = State::ready;
  Place place = {"", 0};
  int meetings = 0;  // of its wave so far: two sets of slots take turns
  Fiber* fiber = nullptr;
};

std::string shown(const Place& place) {
  const char* name = std::strrchr(place.file, '/');
  return std::string(name == nullptr ? place.file : name + 1) + ":" + std::to_string(place.line);
}

bool same(const Place& a, const Place& b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

constexpr int most_lanes = 64;

class Block {
 public:
  void run(const Grid& grid, int block, const std::function<void()>& kernel,
           std::mt19937_64* shuffle);

  // For the running thread.
  int thread() const { return running_; }
  int block() const { return block_; }
  int lane() const { return running_ % lanes_; }
  void* memory(std::size_t bytes);
  void wait_at_barrier(const Place& at);
  // Ends the block: the running thread does not go on.
  // What this thread holds is lost with it: the message is made here and not by the caller.
  template <typename Message>
  void fail(const Message& message) {
    fault_ = message();
    threads_[static_cast<std::size_t>(running_)].fiber->pause();
  }
  bool fnuz() const { return grid_->fnuz; }
  // Deposits what this lane brings; the last lane of the wave to come calls `together` with all
  // slots. Returns the slots.
  template <typename Deposit, typename Together>
  std::span<LaneRegisters> meet(const Place& at, Deposit&& deposit, Together&& together);

 private:
  void run_ready(std::mt19937_64* shuffle);
  void release_barrier();
  [[noreturn]] void stuck() const;

  const Grid* grid_ = nullptr;
  int block_ = 0, running_ = 0, lanes_ = 0;
  std::vector<Thread> threads_;
  std::deque<Fiber> fibers_;  // kept from block to block
  std::vector<std::array<std::array<LaneRegisters, most_lanes>, 2>> waves_;
  std::vector<int> met_;  // lanes of each wave that wait for the others
  std::vector<std::byte> memory_;
  std::size_t memory_bytes_ = 0;  // that the kernel asked for
  std::string fault_;
};

thread_local Block* current = nullptr;

void Block::run(const Grid& grid, int block, const std::function<void()>& kernel,
                std::mt19937_64* shuffle) {
  grid_ = &grid;
  block_ = block;
  lanes_ = grid.lanes;
  const auto count = static_cast<std::size_t>(grid.threads);
  while (fibers_.size() < count) fibers_.emplace_back();
  threads_.assign(count, {});
  const auto waves =
      (count + static_cast<std::size_t>(lanes_) - 1) / static_cast<std::size_t>(lanes_);
  waves_.resize(waves);
  met_.assign(waves, 0);
  memory_.resize(grid.shared_limit);
  ASAN_UNPOISON_MEMORY_REGION(memory_.data(), memory_.size());
  std::memset(memory_.data(), 0xff, memory_.size());
  memory_bytes_ = 0;
  fault_.clear();
  current = this;
  for (std::size_t i = 0; i < count; ++i) {
    threads_[i].fiber = &fibers_[i];
    threads_[i].fiber->start(kernel);
  }
  const auto all_finished = [&] {
    return std::ranges::all_of(threads_,
                               [](const Thread& t) { return t.state == State::finished; });
  };
  do {
    run_ready(shuffle);
    if (!fault_.empty()) break;
    if (!all_finished()) release_barrier();
  } while (!all_finished() && fault_.empty());
  ASAN_UNPOISON_MEMORY_REGION(memory_.data(), memory_.size());
  current = nullptr;
  if (!fault_.empty()) throw KernelFault(fault_);
}

// Until no thread can go on.
void Block::run_ready(std::mt19937_64* shuffle) {
  std::vector<int> order(threads_.size());
  std::iota(order.begin(), order.end(), 0);
  for (bool any = true; any && fault_.empty();) {
    any = false;
    if (shuffle != nullptr) std::ranges::shuffle(order, *shuffle);
    for (const int i : order) {
      Thread& t = threads_[static_cast<std::size_t>(i)];
      if (t.state != State::ready) continue;
      any = true;
      running_ = i;
      t.fiber->resume();
      if (t.fiber->finished()) t.state = State::finished;
      if (!fault_.empty()) return;
    }
  }
}

void Block::release_barrier() {
  const Thread& first = threads_.front();
  for (const Thread& t : threads_) {
    if (t.state != State::at_barrier || first.state != State::at_barrier ||
        !same(t.place, first.place)) {
      stuck();
    }
  }
  for (Thread& t : threads_) t.state = State::ready;
}

void Block::stuck() const {
  const auto what = [](const Thread& t) {
    switch (t.state) {
      case State::finished:
        return std::string("has finished");
      case State::in_wave:
        return "waits for its wave at " + shown(t.place);
      default:
        return "waits at the barrier of " + shown(t.place);
    }
  };
  const Thread& first = threads_.front();
  const std::string why = "block " + std::to_string(block_) + " cannot go on: ";
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const Thread& t = threads_[i];
    if (t.state == first.state && same(t.place, first.place)) continue;
    throw KernelFault(why + "thread " + std::to_string(i) + " " + what(t) + ", thread 0 " +
                      what(first));
  }
  throw KernelFault(why + "every thread " + what(first));
}

void* Block::memory(std::size_t bytes) {
  if (bytes > memory_.size()) {
    fail([&] {
      return "the kernel asks for " + std::to_string(bytes) +
             " bytes of a block's memory; there are " + std::to_string(memory_.size());
    });
  }
  if (memory_bytes_ == 0) {
    memory_bytes_ = bytes;
    ASAN_POISON_MEMORY_REGION(memory_.data() + bytes, memory_.size() - bytes);
  }
  return memory_.data();
}

void Block::wait_at_barrier(const Place& at) {
  Thread& t = threads_[static_cast<std::size_t>(running_)];
  t.state = State::at_barrier;
  t.place = at;
  t.fiber->pause();
}

template <typename Deposit, typename Together>
std::span<LaneRegisters> Block::meet(const Place& at, Deposit&& deposit, Together&& together) {
  const int self = running_, wave = self / lanes_, begin = wave * lanes_;
  const int end = std::min<int>(begin + lanes_, static_cast<int>(threads_.size()));
  Thread& t = threads_[static_cast<std::size_t>(self)];
  const auto slots =
      std::span(waves_[static_cast<std::size_t>(wave)][static_cast<std::size_t>(t.meetings++ % 2)])
          .first(static_cast<std::size_t>(end - begin));
  deposit(slots[static_cast<std::size_t>(self - begin)]);
  t.place = at;
  int& met = met_[static_cast<std::size_t>(wave)];
  if (++met < end - begin) {
    t.state = State::in_wave;
    t.fiber->pause();
    return slots;
  }
  met = 0;
  for (int i = begin; i < end; ++i) {
    Thread& other = threads_[static_cast<std::size_t>(i)];
    if (!same(other.place, at)) {
      fail([&] {
        return "lanes of wave " + std::to_string(wave) + " of block " + std::to_string(block_) +
               " part ways: thread " + std::to_string(i) + " is at " + shown(other.place) +
               ", thread " + std::to_string(self) + " at " + shown(at);
      });
    }
    other.state = State::ready;
  }
  together(slots);
  return slots;
}

}  // namespace

void run_grid(const Grid& grid, const std::function<void()>& kernel) {
  thread_local Block block;
  std::mt19937_64 engine(grid.seed);
  std::vector<int> order(static_cast<std::size_t>(grid.blocks));
  std::iota(order.begin(), order.end(), 0);
  if (grid.seed != 0) std::ranges::shuffle(order, engine);
  for (const int i : order) block.run(grid, i, kernel, grid.seed != 0 ? &engine : nullptr);
}

}  // namespace moegauge::emulator

namespace moe::gpu {

namespace emulator = moegauge::emulator;
using emulator::current;
using emulator::LaneRegisters;

int thread() { return current->thread(); }
int block() { return current->block(); }
int lane_in_wave() { return current->lane(); }
void sync(Place at) { current->wait_at_barrier(at); }
void sync_shared(Place at) { current->wait_at_barrier(at); }
void* block_memory(std::size_t bytes) { return current->memory(bytes); }

std::uint32_t shuffle(std::uint32_t value, int lane, Place at) {
  const auto slots = current->meet(
      at, [&](LaneRegisters& s) { s.value = value; }, [](std::span<LaneRegisters>) {});
  return slots[static_cast<std::size_t>(lane)].value;
}
std::uint32_t shuffle_xor(std::uint32_t value, int mask, Place at) {
  return shuffle(value, lane_in_wave() ^ mask, at);
}

// The first lane's value, as the instruction gives; that the others have the same is the caller's
// promise, and held to.
int uniform(int value, Place at) {
  const int own = value,
            first = static_cast<int>(shuffle(static_cast<std::uint32_t>(value), 0, at));
  if (own != first) {
    current->fail([&] {
      return "thread " + std::to_string(thread()) + " has " + std::to_string(own) +
             " where the first lane of its wave has " + std::to_string(first) + ", at " +
             emulator::shown(at);
    });
  }
  return first;
}

void matrix(Instruction instruction, const void* a, const void* b, void* sums, Place at) {
  const emulator::MatrixInstruction& known = emulator::instruction(instruction);
  const auto bytes = static_cast<std::size_t>(known.elements() * known.element_bytes());
  const auto sum_bytes = static_cast<std::size_t>(known.sums()) * 4;
  const auto slots = current->meet(
      at,
      [&](LaneRegisters& s) {
        std::memcpy(s.a.data(), a, bytes);
        std::memcpy(s.b.data(), b, bytes);
        std::memcpy(s.sums.data(), sums, sum_bytes);
      },
      [&](std::span<LaneRegisters> all) { known.run(all, current->fnuz()); });
  std::memcpy(sums, slots[static_cast<std::size_t>(lane_in_wave())].sums.data(), sum_bytes);
}

}  // namespace moe::gpu
