// `moegauge compare --exec-a DIR --exec-b DIR SUITE`: two builds measured in turn, in fresh
// processes.
#pragma once

#include <string>

#include "harness/commands/command.h"
#include "harness/commands/selection.h"
#include "harness/commands/verdict_outputs.h"

namespace CLI {
class App;
}

namespace moegauge {

struct BuildsOptions {
  std::string exec_a = {}, exec_b = {};
  int pairs = 14;
  std::string keep = {};
  SelectionOptions selection = {};
};

// What `compare` has for files too.
struct ComparisonOptions {
  std::string suite = {}, policy = {}, filter = {};
  VerdictOutputs outputs = {};
};

void add_builds_options(CLI::App& app, BuildsOptions& o);
int compare_builds(const BuildsOptions& builds, const ComparisonOptions& o,
                   const Environment& environment);

}  // namespace moegauge
