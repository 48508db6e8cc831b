#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "harness/commands/command.h"

namespace {

// Started with a standard stream closed (a daemon, some CI), the next file or pipe would get its
// number and be written over.
void open_standard_streams() {
  int fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= 2) fd = open("/dev/null", O_RDWR | O_CLOEXEC);
}

// Google Benchmark reads BENCHMARK_* by itself and would write files, list or shuffle rows.
void forget_benchmark_variables() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with("BENCHMARK_")) names.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  forget_benchmark_variables();
  // A file-size limit must come back as an error of write(), with its file's name.
  std::signal(SIGXFSZ, SIG_IGN);
  const int code =
      moegauge::run_command_line(argc, argv, {std::cout, std::cerr, moegauge::all_backends()});
  if (std::cout.flush()) return code;
  std::cerr << "moegauge: standard output could not be written; give it a place with room\n";
  return 2;
}
