// What commands that measure in several processes share.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/commands/command.h"
#include "harness/commands/interrupt.h"
#include "harness/commands/selection.h"
#include "harness/processes/collect.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace moegauge {

// --tokens, --backend and --device as `run` has them; none makes sense without `needed`.
void add_run_selection(CLI::App& app, SelectionOptions& o, CLI::Option& needed);
// The command line of such a run. `suite` is absolute: who runs it may find others by that name.
std::vector<std::string> run_words(const std::filesystem::path& suite, const SelectionOptions& o);

// "03" of 14.
std::string process_name(std::size_t index, std::size_t count);

// Collects with a line on stderr for each process, and how long the rest will take.
Collected collect_with_progress(const std::filesystem::path& folder,
                                const std::vector<MeasuringProcess>& processes, double spacing,
                                const Environment& environment, CollectHooks hooks = {});

}  // namespace moegauge
