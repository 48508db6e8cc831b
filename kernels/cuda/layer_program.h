// The kernels of one layer, compiled for its exact shape, scheme and tile configuration.
#pragma once

#include <string>

#include "kernels/backend.h"
#include "kernels/cuda/tile_config.h"
#include "kernels/nvidia/runtime/cubin_cache.h"
#include "kernels/nvidia/runtime/device.h"

namespace moegauge::cuda {

// The translation unit that is compiled; it also asserts that host and device agree on sizes. For
// few tokens it is another one.
CompileRequest program_request(const Layer& layer, const CudaScheme& scheme,
                               const TileConfig& config, std::int64_t tokens);

// Order of the kernels in program_request and in LayerProgram.
// amax: only where a scale depends on all of x.
enum class Stage : std::uint8_t { count, prepare, layer, combine, amax };

// Compiles the program into the cache that LayerProgram takes it from. Needs no device.
void compile_program(const Layer& layer, const CudaScheme& scheme, const TileConfig& config,
                     std::int64_t tokens);

class LayerProgram {
 public:
  // Compiles or finds the program and loads it on the current device. Throws CudaFault; a compile
  // failure carries its first error line.
  LayerProgram(const Layer& layer, const CudaScheme& scheme, const TileConfig& config,
               std::int64_t tokens);

  const std::string& hash() const { return hash_; }
  const Kernel& kernel(Stage stage) const { return kernels_[static_cast<std::size_t>(stage)]; }

 private:
  std::string hash_;
  std::vector<Kernel> kernels_;
};

}  // namespace moegauge::cuda
