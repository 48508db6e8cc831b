// Which of a suite's cases a run is about: what --backend, --device, --tokens, --filter, --iterate
// or --profile, and --shard mean together, in that order.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/suite/suite.h"
#include "kernels/backend.h"

namespace moegauge {

struct SelectionOptions {
  std::vector<std::string> backends = {};  // empty: as the suite says
  std::string device = {};                 // "cpu" or "cpu:0": that backend, that device
  std::string tokens = {};                 // list as parse_token_list reads it
  std::string filter = "*";                // glob on case ids; an empty one matches none
  std::string iterate = {}, profile = {};  // the id of one case
  std::string shard = {};                  // "I/N", 1-based
};

// Throws InputError for what cannot be meant (an unknown backend, a shard beyond N, an id that is
// no case). May be empty: nothing matched the filter, or the shard has no point.
std::vector<CaseCoordinates> select_cases(const Suite& suite, const SelectionOptions& options,
                                          std::span<const Backend* const> backends);

// The suite file that is meant: as given, or under `root` or its suites/ folder, with or without
// ".json". Throws InputError.
std::filesystem::path find_suite(const std::string& name, const std::filesystem::path& root);

// Throws InputError that names `option` and the nearest name.
void require_backend(const std::string& name, const std::string& option,
                     std::span<const Backend* const> backends);
// Of --scheme. Throws InputError with the nearest name.
void require_scheme(const std::string& name);
// Of --routing: a law, or a file that is there. Throws InputError with the nearest law.
void require_routing(const std::string& text);
// "cpu" or "cpu:0": the backend's name. Throws InputError that names --device.
std::string backend_of_device(const std::string& device, std::span<const Backend* const> backends);

}  // namespace moegauge
