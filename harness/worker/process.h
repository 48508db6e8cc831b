// A worker process as its parent sees it: this very binary started again with the hidden `worker`
// subcommand, in a process group of its own, killed by the kernel when the parent dies.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "harness/worker/lines.h"
#include "harness/worker/protocol.h"

namespace moegauge {

// How a process ended.
struct Ending {
  bool by_signal = false;
  int code = 0;                // the signal or the exit code
  bool out_of_memory = false;  // the kernel's out-of-memory killer was at work meanwhile
};
// "killed by SIGSEGV", "left with exit code 3".
std::string describe(const Ending& ending);

class WorkerProcess {
 public:
  // Throws std::system_error where the system gives no process.
  static std::unique_ptr<WorkerProcess> start(const sigset_t* signals_of_the_child);
  // Kills what still runs.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // False where the worker is gone, which shows when it is read from. Throws std::system_error
  // where it does not take the line in time.
  bool send(const std::string& line);
  LineReader::Event read(std::string& line, double seconds, const sigset_t* mask) {
    return replies_.read(line, seconds, mask);
  }

  struct InFlight {
    std::optional<std::size_t> case_index;
    Phase phase = Phase::prepare;
  };
  InFlight in_flight() const;

  // Asks it to leave, with SIGTERM (its whole group), and after `grace_seconds` with SIGKILL.
  // True where SIGTERM was enough.
  bool terminate(double grace_seconds);
  // Closes the request pipe, which ends an idle worker, and waits.
  void leave();
  // True once it has ended, whoever may still hold its pipes; what is left of its group is killed.
  bool gone() { return status_ || reaped_within(0); }
  // Waits for the end; call after its reply pipe closed or terminate().
  Ending ending();

 private:
  WorkerProcess(pid_t pid, int requests, int replies, InFlightPage* page);
  bool reaped_within(double seconds);

  pid_t pid_;
  int requests_;
  int reply_fd_;
  LineReader replies_;
  InFlightPage* page_;
  std::uint64_t oom_kills_before_;
  std::optional<int> status_;  // of waitpid
};

// The worker's end: what the hidden subcommand needs to know.
struct WorkerPipes {
  int requests = -1;
  int replies = -1;
  int page = -1;
};

// Maps the page that `fd` stands for. Throws std::system_error.
InFlightPage* map_page(int fd);

}  // namespace moegauge
