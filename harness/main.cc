#include <fcntl.h>

#include <csignal>
#include <iostream>

#include "harness/commands/command.h"

namespace {

// Started with a standard stream closed (a daemon, some CI), the next file or pipe would get its
// number and be written over.
void open_standard_streams() {
  int fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= 2) fd = open("/dev/null", O_RDWR | O_CLOEXEC);
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  // A file-size limit must come back as an error of write(), with its file's name.
  std::signal(SIGXFSZ, SIG_IGN);
  return moegauge::run_command_line(argc, argv, {std::cout, std::cerr, moegauge::all_backends()});
}
