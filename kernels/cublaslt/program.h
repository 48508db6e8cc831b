// The kernels of ours around the library's GEMMs, compiled for one layer.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cublaslt/schemes/library_scheme.h"
#include "kernels/nvidia/runtime/compiler.h"
#include "kernels/nvidia/runtime/device.h"

namespace moegauge::cublaslt {

// Order of the kernels in program_request and in Program. amax, quantise: only where one scale
// depends on a whole tensor; regroup: only where rows have scales; dequantise: only integers.
enum class Stage : std::uint8_t {
  count,
  prepare,
  activation,
  reduce,
  amax,
  quantise,
  regroup,
  dequantise
};

// Something is added to the first GEMM's sums, or they are multiplied, before they are rounded.
bool keeps_wide_sums(const Layer& layer);

cuda::CompileRequest program_request(const Problem& problem, const LibraryScheme& scheme);
// Compiles into the cache that Program takes it from. Needs no device.
void compile_program(const Problem& problem, const LibraryScheme& scheme);

class Program {
 public:
  // Throws CudaFault; a compile failure carries its first error line.
  Program(const Problem& problem, const LibraryScheme& scheme);

  const std::string& hash() const { return hash_; }
  bool has(Stage stage) const { return kernels_.contains(stage); }
  const cuda::Kernel& kernel(Stage stage) const { return kernels_.at(stage); }
  const cuda::Kernel* kernel_or_none(Stage stage) const {
    return has(stage) ? &kernels_.at(stage) : nullptr;
  }

 private:
  std::string hash_;
  std::map<Stage, cuda::Kernel> kernels_;
};

}  // namespace moegauge::cublaslt
