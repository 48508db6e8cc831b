#include "kernels/hip/emulator/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define MOEGAUGE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define MOEGAUGE_ASAN 1
#endif
#endif
#if !defined(MOEGAUGE_ASAN)
#define MOEGAUGE_ASAN 0
#endif

// ucontext's own switch asks the system to change the signal mask each time, which takes longer
// than all else; where there is no better one it serves.
#if defined(__x86_64__) && defined(__ELF__)
#define MOEGAUGE_OWN_SWITCH 1
#else
#define MOEGAUGE_OWN_SWITCH 0
#include <ucontext.h>
#endif

namespace moegauge::emulator {
namespace {

constexpr std::size_t stack_bytes = MOEGAUGE_ASAN ? 1 << 20 : 1 << 18;

// Memory from the system, of which only what is touched is used.
char* allocate_stack() {
  void* p = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  return static_cast<char*>(p);
}

}  // namespace

#if MOEGAUGE_OWN_SWITCH
// Saves what the System V calling convention lets a callee keep, and changes stacks.
extern "C" void moegauge_switch_stack(void** from, void* to);
__asm__(R"(
.text
.globl moegauge_switch_stack
.hidden moegauge_switch_stack
.type moegauge_switch_stack, @function
moegauge_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size moegauge_switch_stack, .-moegauge_switch_stack
)");
#endif

struct Fiber::State {
  char* stack = allocate_stack();
  const std::function<void()>* body = nullptr;
  bool finished = true;
#if MOEGAUGE_OWN_SWITCH
  void* inside = nullptr;
  void* outside = nullptr;
#else
  ucontext_t inside = {}, outside = {};
#endif
  // The sanitiser's view of the stack that resumed the fiber.
  const void* outer_stack = nullptr;
  std::size_t outer_bytes = 0;
  void* fake_stack = nullptr;

  ~State() { munmap(stack, stack_bytes); }

  void enter() {
#if MOEGAUGE_OWN_SWITCH
    moegauge_switch_stack(&outside, inside);
#else
    swapcontext(&outside, &inside);
#endif
  }
  void leave() {
#if MOEGAUGE_OWN_SWITCH
    moegauge_switch_stack(&inside, outside);
#else
    swapcontext(&inside, &outside);
#endif
  }

  void arrived_inside() {
#if MOEGAUGE_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, &outer_stack, &outer_bytes);
#endif
  }

  void run() {
    arrived_inside();
    (*body)();
    finished = true;
#if MOEGAUGE_ASAN
    __sanitizer_start_switch_fiber(nullptr, outer_stack, outer_bytes);
#endif
    leave();
  }
};

namespace {
// Whose first run is about to begin: a fiber's entry takes no arguments.
thread_local Fiber* entering = nullptr;
thread_local void (*enter_fiber)(Fiber*) = nullptr;

[[noreturn]] void entry() {
  enter_fiber(entering);
  __builtin_unreachable();  // a finished fiber is never resumed
}
}  // namespace

Fiber::Fiber() : state_(std::make_unique<State>()) {}
Fiber::~Fiber() = default;

bool Fiber::finished() const { return state_->finished; }

void Fiber::start(const std::function<void()>& body) {
  State& s = *state_;
  s.body = &body;
  s.finished = false;
  s.fake_stack = nullptr;
#if MOEGAUGE_ASAN
  __asan_unpoison_memory_region(s.stack, stack_bytes);
#endif
#if MOEGAUGE_OWN_SWITCH
  // As if `entry` had been called and had switched away at once: six registers, where to return to,
  // and the return address that `entry` never uses, at which the stack is aligned as after a call.
  auto* top = reinterpret_cast<std::uintptr_t*>(s.stack + stack_bytes);
  top[-1] = 0;
  top[-2] = reinterpret_cast<std::uintptr_t>(&entry);
  for (int i = 3; i <= 8; ++i) top[-i] = 0;
  s.inside = &top[-8];
#else
  getcontext(&s.inside);
  s.inside.uc_stack.ss_sp = s.stack;
  s.inside.uc_stack.ss_size = stack_bytes;
  s.inside.uc_link = nullptr;
  makecontext(&s.inside, reinterpret_cast<void (*)()>(&entry), 0);
#endif
}

void Fiber::resume() {
  State& s = *state_;
  entering = this;
  enter_fiber = [](Fiber* fiber) { fiber->state_->run(); };
#if MOEGAUGE_ASAN
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, s.stack, stack_bytes);
#endif
  s.enter();
#if MOEGAUGE_ASAN
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

void Fiber::pause() {
  State& s = *state_;
#if MOEGAUGE_ASAN
  __sanitizer_start_switch_fiber(&s.fake_stack, s.outer_stack, s.outer_bytes);
#endif
  s.leave();
  s.arrived_inside();
}

}  // namespace moegauge::emulator
