#include "harness/commands/worker.h"

#include <CLI/CLI.hpp>
#include <csignal>
#include <memory>

#include "harness/worker/worker.h"

namespace moegauge {

Action add_worker(CLI::App& subcommand) {
  auto pipes = std::make_shared<WorkerPipes>();
  subcommand.add_option("--requests", pipes->requests, "Descriptor to read requests from")
      ->required();
  subcommand.add_option("--replies", pipes->replies, "Descriptor to write replies to")->required();
  subcommand.add_option("--page", pipes->page, "Descriptor of the shared page")->required();
  return [pipes](const Environment& environment) -> int {
    std::signal(SIGPIPE, SIG_IGN);
    serve(*pipes, environment.backends);
    return exit_ok;
  };
}

}  // namespace moegauge
