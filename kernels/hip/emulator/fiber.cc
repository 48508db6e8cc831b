#include "kernels/hip/emulator/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

#include "kernels/hip/emulator/sanitizer_stack.h"

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

constexpr std::size_t stack_bytes = (1 << 18) * SanitizerStack::times_the_stack;

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
  bool entered = false, finished = true;
#if MOEGAUGE_OWN_SWITCH
  void* inside = nullptr;
  void* outside = nullptr;
#else
  ucontext_t inside = {}, outside = {};
#endif
  SanitizerStack sanitizer;

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

  void pause() {
    sanitizer.leave();
    leave();
    sanitizer.back();
  }

  // One body after the other, so that the address sanitiser's stack for locals, whose making takes
  // longer than most bodies, is made once. Without a body: the fiber's end, at which that stack
  // goes.
  void run() {
    sanitizer.back();
    while (body != nullptr) {
      (*body)();
      finished = true;
      pause();
    }
    sanitizer.last();
    leave();
  }

  void make_context();
};

namespace {
// Whose first run is about to begin: a fiber's entry takes no arguments.
thread_local Fiber* entering = nullptr;
thread_local void (*enter_fiber)(Fiber*) = nullptr;

[[noreturn]] void entry() {
  enter_fiber(entering);
  __builtin_unreachable();  // a fiber that has ended is never resumed
}
}  // namespace

Fiber::Fiber() : state_(std::make_unique<State>()) {}

Fiber::~Fiber() {
  if (!state_->entered || !state_->finished) return;
  state_->body = nullptr;
  resume();
}

bool Fiber::finished() const { return state_->finished; }

void Fiber::start(const std::function<void()>& body) {
  State& s = *state_;
  s.body = &body;
  if (!s.finished || !s.entered) s.make_context();
  s.finished = false;
}

void Fiber::State::make_context() {
  entered = false;
  sanitizer.fresh(stack, stack_bytes);
#if MOEGAUGE_OWN_SWITCH
  // As if `entry` had been called and had switched away at once: six registers, where to return to,
  // and the return address that `entry` never uses, at which the stack is aligned as after a call.
  auto* top = reinterpret_cast<std::uintptr_t*>(stack + stack_bytes);
  top[-1] = 0;
  top[-2] = reinterpret_cast<std::uintptr_t>(&entry);
  for (int i = 3; i <= 8; ++i) top[-i] = 0;
  inside = &top[-8];
#else
  getcontext(&inside);
  inside.uc_stack.ss_sp = stack;
  inside.uc_stack.ss_size = stack_bytes;
  inside.uc_link = nullptr;
  makecontext(&inside, reinterpret_cast<void (*)()>(&entry), 0);
#endif
}

void Fiber::resume() {
  State& s = *state_;
  s.entered = true;
  entering = this;
  enter_fiber = [](Fiber* fiber) { fiber->state_->run(); };
  s.sanitizer.enter(s.stack, stack_bytes);
  s.enter();
  s.sanitizer.entered();
}

void Fiber::pause() { state_->pause(); }

}  // namespace moegauge::emulator
