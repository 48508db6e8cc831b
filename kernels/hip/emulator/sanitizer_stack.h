// What a sanitiser must be told when control moves to another stack. Without one: nothing.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MOEGAUGE_ASAN 1
#elif __has_feature(thread_sanitizer)
#define MOEGAUGE_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define MOEGAUGE_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define MOEGAUGE_TSAN 1
#endif

#if defined(MOEGAUGE_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(MOEGAUGE_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace moegauge::emulator {

// Of one stack. `enter` and `entered` stand around a switch to it, outside; `leave` and `back`
// around a switch away from it, inside; `back` also where it is entered first. `last` goes before
// the switch that nothing comes back from.
#if defined(MOEGAUGE_ASAN)
class SanitizerStack {
 public:
  static constexpr std::size_t times_the_stack = 4;  // locals stand in guarded places

  void fresh(void* stack, std::size_t bytes) { __asan_unpoison_memory_region(stack, bytes); }
  void enter(void* stack, std::size_t bytes) {
    __sanitizer_start_switch_fiber(&outer_locals_, stack, bytes);
  }
  void entered() { __sanitizer_finish_switch_fiber(outer_locals_, nullptr, nullptr); }
  void back() { __sanitizer_finish_switch_fiber(locals_, &outer_, &outer_bytes_); }
  void leave() { __sanitizer_start_switch_fiber(&locals_, outer_, outer_bytes_); }
  void last() { __sanitizer_start_switch_fiber(nullptr, outer_, outer_bytes_); }

 private:
  void *locals_ = nullptr, *outer_locals_ = nullptr;
  const void* outer_ = nullptr;
  std::size_t outer_bytes_ = 0;
};
#elif defined(MOEGAUGE_TSAN)
class SanitizerStack {
 public:
  static constexpr std::size_t times_the_stack = 1;

  SanitizerStack() = default;
  ~SanitizerStack() { __tsan_destroy_fiber(fiber_); }
  SanitizerStack(const SanitizerStack&) = delete;
  SanitizerStack& operator=(const SanitizerStack&) = delete;

  // What was called and has not returned is forgotten with the old one.
  void fresh(void*, std::size_t) {
    __tsan_destroy_fiber(fiber_);
    fiber_ = __tsan_create_fiber(0);
  }
  void enter(void*, std::size_t) {
    outer_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber_, 0);
  }
  void entered() {}
  void back() {}
  void leave() { __tsan_switch_to_fiber(outer_, 0); }
  void last() { leave(); }

 private:
  void *fiber_ = __tsan_create_fiber(0), *outer_ = nullptr;
};
#else
class SanitizerStack {
 public:
  static constexpr std::size_t times_the_stack = 1;

  void fresh(void*, std::size_t) {}
  void enter(void*, std::size_t) {}
  void entered() {}
  void back() {}
  void leave() {}
  void last() {}
};
#endif

}  // namespace moegauge::emulator
