// Everything that ships as data, without measuring anything: suites pass the preflight of a run,
// every model and policy is read, and a tuned file holds for whatever case will take it, on devices
// that are not here too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/commands/preflight.h"
#include "harness/config_table.h"
#include "harness/judge/policy.h"
#include "harness/suite/suite.h"
#include "harness/workload/problem.h"
#include "kernels/backend.h"
#include "kernels/hip/emulator/emulated_backends.h"
#include "reference/base/input_error.h"
#include "reference/ops/op.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> json_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

struct TunedFile {
  const Backend* backend = nullptr;
  ConfigTable table;
  ConfigFileName name;
};

// Of every backend of this version, present or not.
const std::vector<TunedFile>& tuned_files() {
  static const std::vector<TunedFile> all = [] {
    std::vector<TunedFile> found;
    for (const Backend* backend : all_backends()) {
      if (backend->config_folder().empty() || !fs::exists(backend->config_folder())) continue;
      for (const fs::path& file : json_files(backend->config_folder())) {
        const auto name = parse_config_file_name(file.filename().string());
        if (!name) throw InputError(file.string(), "no name of a tuned file", "E=..,N=..json");
        found.push_back({backend, load_config_table(file), *name});
      }
    }
    return found;
  }();
  return all;
}

bool is_named_for(const TunedFile& file, const Problem& problem) {
  const std::string device = file.name.device_name;
  return file.table.file.filename() == config_file_name(problem.layer, *problem.scheme, device);
}

// Why a run would refuse the file for the problem, on the device that the file names.
std::optional<std::string> disagreement(const TunedFile& file, const Problem& problem) {
  try {
    Device device;
    device.name = file.name.device_name;
    check_table(file.table, problem, device);
  } catch (const InputError& error) {
    return error.what();
  }
  return std::nullopt;
}

TEST(ShippedSuites, PassThePreflightOfARun) {
  for (const fs::path& file : json_files("suites")) {
    const Suite suite = load_suite(file, ".");
    EXPECT_NO_THROW(check_inputs(suite.cases, file, all_backends(), ".")) << file;
  }
}

// Two layers may share a file's name; a file that fits none of the cases that find it fits nothing.
TEST(ShippedTunedFiles, HoldForACaseOfASuiteOnTheirDevice) {
  std::map<fs::path, int> uses;
  std::map<fs::path, std::set<std::string>> reasons;
  for (const fs::path& file : json_files("suites")) {
    for (const CaseCoordinates& c : load_suite(file, ".").cases) {
      if (c.config != "tuned" || find_op(c.op) != nullptr) continue;
      const Problem problem = problem_of(c, ".");
      for (const TunedFile& tuned : tuned_files()) {
        const bool may_run = c.backend == "auto" || c.backend == tuned.backend->name();
        if (!may_run || !is_named_for(tuned, problem)) continue;
        const auto reason = disagreement(tuned, problem);
        ++(reason ? uses[""] : uses[tuned.table.file]);
        if (reason) reasons[tuned.table.file].insert(*reason);
      }
    }
  }
  for (const TunedFile& tuned : tuned_files()) {
    EXPECT_GT(uses[tuned.table.file], 0) << tuned.table.file << " serves no case of a suite; "
                                         << testing::PrintToString(reasons[tuned.table.file]);
  }
}

TEST(ShippedTunedFiles, SayTheFourThingsThatTheirNamesDoNot) {
  ASSERT_GT(tuned_files().size(), 4U);
  for (const TunedFile& tuned : tuned_files()) {
    for (const char* key : {"scheme", "hidden_size", "top_k", "group_size"}) {
      EXPECT_TRUE(tuned.table.metadata.contains(key)) << tuned.table.file << ": " << key;
    }
    EXPECT_THAT(tuned.table.warnings, testing::IsEmpty()) << tuned.table.file;
  }
}

// Of AMD's architectures the emulated backends stand for devices that are not here.
TEST(ShippedTunedFiles, HoldConfigsThatTheirKernelsTake) {
  int checked = 0;
  std::vector<const Backend*> present;
  for (const Backend* backend : emulated_backends()) present.push_back(backend);
  for (const Backend* backend : all_backends()) {
    if (backend->availability().present) present.push_back(backend);
  }
  for (const fs::path& file : json_files("suites")) {
    for (const CaseCoordinates& c : load_suite(file, ".").cases) {
      if (c.config != "tuned" || find_op(c.op) != nullptr) continue;
      Problem problem = problem_of(c, ".");
      for (const TunedFile& tuned : tuned_files()) {
        if (!is_named_for(tuned, problem) || disagreement(tuned, problem)) continue;
        for (const Backend* backend : present) {
          const Device device = backend->device();
          if (tuned.name.device_name != device.tuned_name() &&
              tuned.name.device_name != device.arch)
            continue;
          for (const auto& [tokens, config] : tuned.table.entries) {
            problem.tokens = tokens;
            const auto refusal = backend->refuses_config(problem, config);
            EXPECT_FALSE(refusal) << tuned.table.file << " at " << tokens << ": "
                                  << refusal->sentence;
            ++checked;
          }
        }
      }
    }
  }
  EXPECT_GT(checked, 0);
}

TEST(ShippedModels, OfTheSuitesOwnFoldersAreReadAndUsed) {
  std::set<fs::path> used;
  for (const fs::path& file : json_files("suites")) {
    for (const CaseCoordinates& c : load_suite(file, ".").cases) {
      used.insert(fs::weakly_canonical(model_file(c.model, ".")));
    }
  }
  int own = 0;
  for (const auto& entry : fs::directory_iterator("suites")) {
    const std::string folder = entry.path().filename().string();
    if (!entry.is_directory() || folder == "models" || folder == "policies") continue;
    for (const fs::path& file : json_files(entry.path())) {
      ++own;
      EXPECT_NO_THROW(load_model(file.string(), ".")) << file;
      EXPECT_TRUE(used.contains(fs::weakly_canonical(file))) << file << " is used by no suite";
    }
  }
  EXPECT_GT(own, 10);
  for (const std::string& name : model_names(".")) EXPECT_NO_THROW(load_model(name, ".")) << name;
}

TEST(ShippedPolicies, AreRead) {
  const std::vector<fs::path> files = json_files("suites/policies");
  EXPECT_FALSE(files.empty());
  for (const fs::path& file : files) EXPECT_NO_THROW(load_policy(file)) << file;
}

}  // namespace
}  // namespace moegauge
