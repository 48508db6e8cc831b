// Tuned-config files in the format that serving engines use:
// `E=128,N=768,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128,128].json`.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/json/document.h"
#include "kernels/backend.h"

namespace moegauge {

struct ConfigTable {
  std::filesystem::path file = {};
  std::map<std::int64_t, Config> entries = {};       // batch size M -> config
  std::map<std::string, std::string> metadata = {};  // non-numeric keys
  std::vector<std::string> warnings = {};            // where engines would answer otherwise
};

struct ConfigChoice {
  std::int64_t key = 0;
  Config config = {};
  bool extrapolated = false;  // M outside [min / 2, max * 2]
};

// A batch-size key is a decimal number; its value maps names to integers from 0 up (BLOCK_SIZE_M or
// tile_m, num_warps, waves_per_eu, ...), kept as they are: which of them a backend knows is its own
// business. Any other key is metadata: a string, number or flag. Throws InputError, also for a
// table without entries, and for a slip of a key that check_table compares.
ConfigTable load_config_table(const std::filesystem::path& file);
ConfigTable read_config_table(const JsonDocument& document, const std::filesystem::path& file);

// Nearest |key - M|, ties to the smaller key whatever the order in the file. The table has entries.
ConfigChoice choose(const ConfigTable& table, std::int64_t tokens);

// What a file's name says. Neither hidden size nor top_k is in it: that is what metadata is for.
struct ConfigFileName {
  std::int64_t experts = 0;  // local experts
  // Of this rank. Always the true size here; engines that pack two int4 into a byte double it in
  // the names of their int4_w4a16 files.
  std::int64_t intermediate_size = 0;
  std::string device_name = {};                         // see normalized_device_name
  std::string dtype = {};                               // empty for bf16 and fp16
  std::optional<std::pair<int, int>> block_shape = {};  // {n, k}
  friend bool operator==(const ConfigFileName&, const ConfigFileName&) = default;
};
std::string to_string(const ConfigFileName& name);
// Nothing if `file` (a name without folders) is not of the form.
std::optional<ConfigFileName> parse_config_file_name(std::string_view file);

// As engines spell it: runs of white space and "/" become "_"; every variant of the H200 is
// NVIDIA_H200.
std::string normalized_device_name(std::string_view name);

// The file name for a layer, scheme and device.
std::string config_file_name(const Layer& layer, const Scheme& scheme,
                             const std::string& device_name);

// The tuned file of a layer on a backend's device, relative to the root, whether it is there or
// not; empty where the backend has none at all.
std::filesystem::path tuned_config_file(const Backend& backend, const Problem& problem);

// Throws InputError where a name of the above form is of another E, N, dtype or block shape, or
// where scheme, hidden_size, top_k or group_size in the metadata disagree with the layer: such a
// file must not be used. Returns what else no longer matches, each as `key: file has "x", this run
// "y"`: `device` (of the metadata, else of the name), and whatever else `environment` tells the
// present value of (driver, compiler).
std::vector<std::string> check_table(const ConfigTable& table, const Problem& problem,
                                     const Device& device,
                                     const std::map<std::string, std::string>& environment = {});

}  // namespace moegauge
