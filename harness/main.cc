#include <iostream>

#include "harness/commands/command.h"

int main(int argc, char** argv) {
  return moegauge::run_command_line(argc, argv, {std::cout, std::cerr, moegauge::all_backends()});
}
