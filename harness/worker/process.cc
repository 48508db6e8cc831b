#include "harness/worker/process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace moegauge {
namespace {

// Requests are read between points, when a worker does nothing else.
constexpr double kSendSeconds = 30;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

struct Pipe {
  Descriptor read_end, write_end;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// Processes that the kernel killed for memory since boot, machine-wide and in this control group.
std::uint64_t oom_kills() {
  std::uint64_t kills = 0;
  for (const char* file : {"/proc/vmstat", "/sys/fs/cgroup/memory.events"}) {
    std::ifstream stream(file);
    std::string name;
    for (std::uint64_t value = 0; stream >> name >> value;) {
      if (name == "oom_kill") kills += value;
    }
  }
  return kills;
}

// Only async-signal-safe calls from here to exec. Never returns.
[[noreturn]] void become_worker(pid_t parent, const std::array<int, 3>& kept,
                                const sigset_t* signals, char* const* arguments) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // the parent died before the line above
  // Memory ran out? Better the worker than its parent or a neighbour.
  if (const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); score >= 0) {
    [[maybe_unused]] const ssize_t ignored = ::write(score, "1000", 4);
    ::close(score);
  }
  if (const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC); null >= 0) ::dup2(null, 0);
  ::dup2(2, 1);  // stdout is the parent's table
  for (const int fd : kept) ::fcntl(fd, F_SETFD, 0);
  ::sigprocmask(SIG_SETMASK, signals, nullptr);
  ::execv("/proc/self/exe", arguments);
  ::_exit(127);
}

}  // namespace

std::string describe(const Ending& ending) {
  if (!ending.by_signal) return "left with exit code " + std::to_string(ending.code);
  const char* name = ::sigabbrev_np(ending.code);
  std::string text = "killed by " + (name != nullptr ? std::string("SIG") + name
                                                     : "signal " + std::to_string(ending.code));
  if (ending.out_of_memory) text += " from the kernel's out-of-memory killer";
  return text;
}

InFlightPage* map_page(int fd) {
  void* address = ::mmap(nullptr, sizeof(InFlightPage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) fail("mmap");
  return static_cast<InFlightPage*>(address);
}

std::unique_ptr<WorkerProcess> WorkerProcess::start(const sigset_t* signals_of_the_child) {
  Pipe requests = make_pipe(), replies = make_pipe();
  const Descriptor page_fd(::memfd_create("moegauge-in-flight", MFD_CLOEXEC));
  if (page_fd.get() < 0) fail("memfd_create");
  if (::ftruncate(page_fd.get(), sizeof(InFlightPage)) != 0) fail("ftruncate");
  InFlightPage* page = map_page(page_fd.get());
  page->case_index = InFlightPage::kNothing;

  const std::array<int, 3> kept = {requests.read_end.get(), replies.write_end.get(), page_fd.get()};
  std::vector<std::string> words = {"moegauge",   "worker",
                                    "--requests", std::to_string(kept[0]),
                                    "--replies",  std::to_string(kept[1]),
                                    "--page",     std::to_string(kept[2])};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) fail("fork");
  if (pid == 0) become_worker(parent, kept, signals_of_the_child, arguments.data());
  ::setpgid(pid, pid);  // as the child does: whoever is first, the group is there to be killed
  ::fcntl(requests.write_end.get(), F_SETFL, O_NONBLOCK);  // see send()
  return std::unique_ptr<WorkerProcess>(
      new WorkerProcess(pid, requests.write_end.release(), replies.read_end.release(), page));
}

WorkerProcess::WorkerProcess(pid_t pid, int requests, int replies, InFlightPage* page)
    : pid_(pid),
      requests_(requests),
      reply_fd_(replies),
      replies_(replies),
      page_(page),
      oom_kills_before_(oom_kills()) {}

WorkerProcess::~WorkerProcess() {
  if (!status_) terminate(0);
  if (requests_ >= 0) ::close(requests_);
  ::close(reply_fd_);
  ::munmap(page_, sizeof(InFlightPage));
}

bool WorkerProcess::send(const std::string& line) {
  switch (write_line(requests_, line, kSendSeconds)) {
    case Written::whole:
      return true;
    case Written::reader_gone:
      return false;
    case Written::too_slow:
      break;
  }
  throw std::system_error(ETIMEDOUT, std::generic_category(), "the worker takes no requests");
}

WorkerProcess::InFlight WorkerProcess::in_flight() const {
  const std::uint32_t index = page_->case_index.load(std::memory_order_acquire);
  if (index == InFlightPage::kNothing) return {};
  return {index, static_cast<Phase>(page_->phase.load(std::memory_order_relaxed))};
}

// Once it is reaped its number is free for another process, and another group: all killing comes
// before.
bool WorkerProcess::reaped_within(double seconds) {
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto deadline = now() + std::chrono::duration<double>(seconds);
  for (;;) {
    siginfo_t dead = {};
    if (::waitid(P_PID, static_cast<id_t>(pid_), &dead, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        dead.si_pid == pid_) {
      ::kill(-pid_, SIGKILL);  // what a kernel may have started and left behind
      int status = 0;
      while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
      }
      status_ = status;
      return true;
    }
    if (now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

bool WorkerProcess::terminate(double grace_seconds) {
  if (status_) return true;
  // Stopped processes (SIGSTOP) see SIGTERM only once they go on.
  ::kill(-pid_, SIGTERM);
  ::kill(-pid_, SIGCONT);
  if (reaped_within(grace_seconds)) return true;
  ::kill(-pid_, SIGKILL);
  reaped_within(30);
  return false;
}

void WorkerProcess::leave() {
  ::close(std::exchange(requests_, -1));
  // An idle worker leaves at once; freeing many GiB of weights takes a moment.
  if (!reaped_within(10)) terminate(0.5);
}

Ending WorkerProcess::ending() {
  // It closed its reply pipe: it is gone, or about to be; one that merely closed the pipe is ended.
  if (!status_ && !reaped_within(5)) terminate(0.5);
  const int status = status_.value_or(SIGKILL);
  if (!WIFSIGNALED(status)) return {false, WEXITSTATUS(status), false};
  const int signal = WTERMSIG(status);
  return {true, signal, signal == SIGKILL && oom_kills() > oom_kills_before_};
}

}  // namespace moegauge
