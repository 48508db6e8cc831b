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
  sigaddset(&blocked, SIGINT);
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_BLOCK, &blocked, &before_mask_);
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &before_int_);
  sigaction(SIGTERM, &action, &before_term_);
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;  // a worker that died is seen when it is read from
  sigaction(SIGPIPE, &ignore, &before_pipe_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &before_int_, nullptr);
  sigaction(SIGTERM, &before_term_, nullptr);
  sigaction(SIGPIPE, &before_pipe_, nullptr);
  sigprocmask(SIG_SETMASK, &before_mask_, nullptr);
}

int InterruptGuard::signal() const { return caught; }

}  // namespace moegauge
