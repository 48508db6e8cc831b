// The results of several processes, measured one after the other and kept in a folder, so that who
// was interrupted goes on where it stopped.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "harness/processes/child.h"
#include "harness/result/record.h"

namespace moegauge {

// One process: `program run ARGUMENTS --out FOLDER/NAME.json`, what it prints in NAME.log.
struct MeasuringProcess {
  std::string name = {};
  std::string who = {};  // for messages: "build A"
  std::filesystem::path program = {};
  std::vector<std::string> arguments = {};  // "run", SUITE, its options
};

struct CollectHooks {
  std::function<void(std::size_t index)> started = [](std::size_t) {};
  // `already`: it lay in the folder.
  std::function<void(std::size_t index, bool already)> finished = [](std::size_t, bool) {};
  // Looked at after each: nothing more is measured once it is false.
  std::function<bool(const std::vector<Result>&)> worth_going_on = [](const auto&) { return true; };
  Interruption interruption = {};
};

struct Collected {
  std::vector<Result> results = {};  // in order, up to the first that is not there
  int interrupted_by = 0;
  // Of a process that left no result for a reason that is not the input's.
  std::string failed = {};
};

// `spacing`: seconds between the end of one process and the start of the next. Throws InputError
// for a process that refused its input, with what it said.
Collected collect(const std::filesystem::path& folder,
                  const std::vector<MeasuringProcess>& processes, double spacing,
                  const CollectHooks& hooks);

// Makes `folder`, and notes in it what its results are of, a line per fact. A folder of anything
// else is refused with the first line that differs. Throws InputError.
void claim_folder(const std::filesystem::path& folder, const std::string& facts);

// What changes with every build: a line for `program` and each library beside it.
std::string build_facts(const std::filesystem::path& program);

}  // namespace moegauge
