// Tuned-config files in the format that serving engines use:
// `E=128,N=768,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128,128].json`.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace moegauge {

struct ConfigTable {
  std::filesystem::path file;
  std::map<std::int64_t, Config> entries;        // batch size M -> config
  std::map<std::string, std::string> metadata;   // non-numeric keys
  std::vector<std::string> warnings;             // e.g. an order in the file that would change an engine's answer
};

struct ConfigChoice {
  std::int64_t key = 0;
  Config config;
  bool extrapolated = false;  // M outside [min / 2, max * 2]
};

// Throws InputError. An empty table is an error.
ConfigTable load_config_table(const std::filesystem::path& file);
// Nearest |key - M|, ties to the smaller key whatever the order in the file.
ConfigChoice choose(const ConfigTable& table, std::int64_t tokens);
// The file name for a layer, scheme and device.
std::string config_file_name(const Layer& layer, const Scheme& scheme, const std::string& device_name);
// Reasons why the file must not be used for this layer (scheme, hidden_size, top_k, group_size
// metadata that disagree); throws InputError. Returns the metadata that merely went stale.
std::vector<std::string> check_metadata(const ConfigTable& table, const Problem& problem,
                                        const Device& device);

}  // namespace moegauge
