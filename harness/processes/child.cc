#include "harness/processes/child.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

extern char** environ;

namespace moegauge {
namespace {

void nothing(int) {}

// While it lives, the end of a child ends a wait: the signal is blocked outside of waits and has a
// handler, because one that is ignored wakes nobody.
class ChildSignal {
 public:
  explicit ChildSignal(const sigset_t& wait_mask) : wait_mask_(wait_mask) {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &before_mask_);
    struct sigaction action = {};
    action.sa_handler = nothing;
    sigaction(SIGCHLD, &action, &before_);
    sigdelset(&wait_mask_, SIGCHLD);
  }
  ~ChildSignal() {
    sigaction(SIGCHLD, &before_, nullptr);
    sigprocmask(SIG_SETMASK, &before_mask_, nullptr);
  }
  ChildSignal(const ChildSignal&) = delete;
  ChildSignal& operator=(const ChildSignal&) = delete;

  void wait() const { ::ppoll(nullptr, 0, nullptr, &wait_mask_); }

 private:
  sigset_t wait_mask_;
  sigset_t before_mask_ = {};
  struct sigaction before_ = {};
};

// 0 or errno.
int spawn(const std::filesystem::path& program, const std::vector<std::string>& arguments,
          const std::filesystem::path& log, const sigset_t& signals, pid_t& pid) {
  std::vector<std::string> words = {"moegauge"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_CREAT | O_APPEND | O_WRONLY, 0666);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigset_t as_usual;
  sigemptyset(&as_usual);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGCHLD}) sigaddset(&as_usual, signal);
  posix_spawnattr_setsigdefault(&attributes, &as_usual);
  const int error = ::posix_spawn(&pid, program.c_str(), &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

}  // namespace

ChildEnd run_child(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                   const std::filesystem::path& log, const Interruption& interruption) {
  const ChildSignal ends(interruption.wait_mask);
  pid_t pid = -1;
  if (const int error = spawn(program, arguments, log, interruption.wait_mask, pid)) {
    return {.cannot_start = std::strerror(error)};
  }
  bool told = false;
  for (int status = 0;;) {
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid) {
      const bool by_signal = WIFSIGNALED(status);
      return {.by_signal = by_signal, .code = by_signal ? WTERMSIG(status) : WEXITSTATUS(status)};
    }
    if (ended < 0 && errno != EINTR) return {.cannot_start = std::strerror(errno)};
    if (const int signal = interruption.signal(); signal != 0 && !told) {
      ::kill(pid, signal);
      told = true;
    }
    ends.wait();
  }
}

void wait_for(double seconds, const Interruption& interruption) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (interruption.signal() == 0) {
    const double left = std::chrono::duration<double>(end - Clock::now()).count();
    if (left <= 0) return;
    const double whole = std::floor(left);
    const timespec time = {static_cast<time_t>(whole), static_cast<long>((left - whole) * 1e9)};
    ::ppoll(nullptr, 0, &time, &interruption.wait_mask);
  }
}

}  // namespace moegauge
