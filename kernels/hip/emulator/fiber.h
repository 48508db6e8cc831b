// Fibers: stacks of their own that hand control to each other, known to the address sanitiser.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace moegauge::emulator {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Gets ready to call `body` from its start, whatever the fiber did before: what it left on its
  // stack is forgotten and not destroyed. `body` outlives the fiber's run and must not throw.
  void start(const std::function<void()>& body);
  // From the outside: runs until the fiber pauses or has finished.
  void resume();
  // From the inside.
  void pause();
  bool finished() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace moegauge::emulator
