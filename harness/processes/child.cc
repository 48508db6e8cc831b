#include "harness/processes/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>

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

  // `timeout`: null for ever.
  void wait(const timespec* timeout) const { ::ppoll(nullptr, 0, timeout, &wait_mask_); }

 private:
  sigset_t wait_mask_;
  sigset_t before_mask_ = {};
  struct sigaction before_ = {};
};

// Only async-signal-safe calls from here to exec. Never returns: where nothing can be run, `failed`
// gets errno.
[[noreturn]] void become(const char* program, char* const* words, const char* log,
                         const sigset_t& signals, pid_t parent, int failed) {
  ::setpgid(0, 0);
  // An orphan would go on measuring beside whoever goes on with this folder.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it died before the line above
  struct sigaction as_usual = {};
  as_usual.sa_handler = SIG_DFL;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD}) {
    ::sigaction(signal, &as_usual, nullptr);
  }
  const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int out = ::open(log, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0666);
  if (in >= 0 && out >= 0) {
    ::dup2(in, 0);
    ::dup2(out, 1);
    ::dup2(out, 2);
    ::sigprocmask(SIG_SETMASK, &signals, nullptr);
    ::execve(program, words, environ);
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(failed, &error, sizeof error);
  ::_exit(127);
}

// 0 or errno.
int spawn(const std::filesystem::path& program, const std::vector<std::string>& arguments,
          const std::filesystem::path& log, const sigset_t& signals, pid_t& pid) {
  std::vector<std::string> words = {"moegauge"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  std::array<int, 2> failed = {-1, -1};  // closed by a successful exec
  if (::pipe2(failed.data(), O_CLOEXEC) != 0) return errno;
  const pid_t parent = ::getpid();
  pid = ::fork();
  if (pid == 0) become(program.c_str(), argv.data(), log.c_str(), signals, parent, failed[1]);
  int error = pid < 0 ? errno : 0;
  ::close(failed[1]);
  if (pid > 0) {
    ::setpgid(pid, pid);  // as the child does, so that the group is there to be killed
    const ssize_t got = ::read(failed[0], &error, sizeof error);
    if (got != sizeof error) error = 0;
    if (error != 0) ::waitpid(pid, nullptr, 0);
  }
  ::close(failed[0]);
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
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> told;
  for (int status = 0;;) {
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid) {
      const bool by_signal = WIFSIGNALED(status);
      return {.by_signal = by_signal, .code = by_signal ? WTERMSIG(status) : WEXITSTATUS(status)};
    }
    if (ended < 0 && errno != EINTR) return {.cannot_start = std::strerror(errno)};
    if (const int signal = interruption.signal(); signal != 0 && !told) {
      ::kill(pid, signal);
      told = Clock::now();
    }
    // Nobody who asked for an end waits for one that ignores it.
    if (told && Clock::now() - *told > std::chrono::duration<double>(interruption.grace_seconds)) {
      ::kill(-pid, SIGKILL);
    }
    const timespec look_again = {0, 100'000'000};
    ends.wait(told ? &look_again : nullptr);
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
