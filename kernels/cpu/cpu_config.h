// The CPU backend's configuration as a typed aggregate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/machine.h"
#include "kernels/cpu/schemes/cpu_scheme.h"

namespace moegauge::cpu {

struct CpuConfig {
  // Rows of one expert that share a decoded panel and one packed copy of activations.
  std::int64_t block_m = 0;  // BLOCK_SIZE_M
  // Output columns of one task: of h for the first GEMM (each with its gate and its up), of y for
  // the second. A multiple of 64 and of the scheme's scale group.
  std::int64_t block_n = 0;  // BLOCK_SIZE_N
  // Contracted elements of weights decoded at a time. A multiple of 32 and of the scale group.
  std::int64_t block_k = 0;  // BLOCK_SIZE_K
  std::int64_t num_threads = 0;
  // Bytes of packed weights that are fetched ahead of their use; 0 leaves it to the hardware. Where
  // an expert has more rows than one block of registers, the next BLOCK_SIZE_K elements are fetched
  // instead, whatever the distance.
  std::int64_t prefetch_distance = 0;
  // 1: each expert's part of a GEMM is a loop of its own over the threads, which all wait for its
  // end before the next begins, as where a GPU's host launches a GEMM per expert. Also experts
  // without tokens have one: such a host does not know the ids. 0: one loop over all experts.
  std::int64_t launch_per_expert = 0;

  friend bool operator==(const CpuConfig&, const CpuConfig&) = default;
};

// What is used where no tuned file says otherwise.
CpuConfig heuristic_config(const Layer& layer, const Recipe& recipe, std::int64_t tokens,
                           const Machine& machine);

Config to_config(const CpuConfig& config);

// Reads `config`; keys that it does not have come from heuristic_config.
Expected<CpuConfig, Refusal> parse_config(const Config& config, const Layer& layer,
                                          const Recipe& recipe, std::int64_t tokens,
                                          const Machine& machine);

// What `tune` tries: blocks and prefetch distances about the heuristic's, one changed first, then
// two. The number of threads is the machine's and in no tuned file.
std::vector<Config> candidate_configs(const Layer& layer, const Recipe& recipe, std::int64_t tokens,
                                      const Machine& machine);

}  // namespace moegauge::cpu
