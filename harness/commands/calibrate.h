// `moegauge doctor --calibrate SUITE`: how much processes differ on this machine where nothing
// changes.
#pragma once

#include <string>

#include "harness/commands/command.h"
#include "harness/commands/selection.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace moegauge {

struct CalibrateOptions {
  std::string suite = {};
  int processes = 8;
  std::string spacing = "30s";
  std::string out = "results/local/calibration.json";
  std::string keep = {};
  SelectionOptions selection = {};
};

void add_calibrate_options(CLI::App& app, CalibrateOptions& o, CLI::Option& excluded);
int calibrate_suite(const CalibrateOptions& o, bool json, const Environment& environment);

}  // namespace moegauge
