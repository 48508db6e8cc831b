#include "harness/commands/interrupt.h"

namespace moegauge {
namespace {

volatile std::sig_atomic_t caught = 0;

void note(int signal) { caught = signal; }

}  // namespace

InterruptGuard::InterruptGuard() {
  caught = 0;
  sigset_t blocked;
  sigemptyset(&blocked);
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (std::size_t i = 0; i < asking.size(); ++i) {
    sigaction(asking[i], nullptr, &before_[i]);
    if (before_[i].sa_handler == SIG_IGN) continue;  // as nohup asks for
    sigaddset(&blocked, asking[i]);
    sigaction(asking[i], &action, nullptr);
  }
  sigprocmask(SIG_BLOCK, &blocked, &before_mask_);
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;  // a worker that died is seen when it is read from
  sigaction(SIGPIPE, &ignore, &before_pipe_);
}

InterruptGuard::~InterruptGuard() {
  for (std::size_t i = 0; i < asking.size(); ++i) sigaction(asking[i], &before_[i], nullptr);
  sigaction(SIGPIPE, &before_pipe_, nullptr);
  sigprocmask(SIG_SETMASK, &before_mask_, nullptr);
}

int InterruptGuard::signal() const { return caught; }

}  // namespace moegauge
