// One command of this tool as a process of its own, waited for without burning a processor that is
// being measured.
#pragma once

#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace moegauge {

// How the person who started this asks it to stop. Outside of waits the signals are blocked.
struct Interruption {
  std::function<int()> signal = [] { return 0; };  // the signal that came, or 0
  sigset_t wait_mask = {};                         // to wait with
  double grace_seconds = 20;  // from the signal until a child that goes on is killed
};

struct ChildEnd {
  bool by_signal = false;
  int code = 0;                   // exit code, or signal
  std::string cannot_start = {};  // the system's reason; nothing ran
};

// Runs `program` to its end; what it prints goes to `log`. It stands in a process group of its own,
// so that Ctrl-C reaches it once, from here, and not from the terminal too: a second one would end
// it before it has written what it has. It dies with this process, however that ends.
ChildEnd run_child(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                   const std::filesystem::path& log, const Interruption& interruption);

// Returns early when interrupted.
void wait_for(double seconds, const Interruption& interruption);

}  // namespace moegauge
