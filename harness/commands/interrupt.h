// Ctrl-C, SIGTERM and SIGHUP while a command works: noted, so that it can write what it has; a
// second one ends the process as usual.
#pragma once

#include <array>
#include <csignal>

namespace moegauge {

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // The signal that came, or 0.
  int signal() const;
  // Outside of waits the signals are blocked, so that none slips in between a look and a wait; this
  // is the mask to wait with.
  const sigset_t& wait_mask() const { return before_mask_; }

 private:
  sigset_t before_mask_ = {};
  static constexpr std::array asking = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, asking.size()> before_ = {};
  struct sigaction before_pipe_ = {};
};

}  // namespace moegauge
