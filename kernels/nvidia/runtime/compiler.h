// Device code compiled at run time (NVRTC) for one exact shape class, scheme and config.
#pragma once

#include <string>
#include <vector>

#include "kernels/nvidia/runtime/shared_library.h"

namespace moegauge::cuda {

// One file of device source by the name under which others include it.
struct SourceFile {
  std::string name;
  std::string text;
};

// Everything that decides what comes out, besides the compiler itself.
struct CompileRequest {
  SourceFile main;                   // usually a few lines: includes and one instantiation
  std::vector<SourceFile> includes;  // every file that main may include
  std::vector<std::string> options;  // without the architecture
  std::string arch;                  // "sm_90a"
  // Kernels wanted, as C++ expressions that instantiate them: "moe::layer_kernel<C>".
  std::vector<std::string> kernels;
};

// What ptxas says; the worst of the kernels in one program.
struct ResourceUse {
  int registers = 0;
  int spill_stores_bytes = 0, spill_loads_bytes = 0;
  int stack_bytes = 0;
  bool serialized_wgmma =
      false;  // ptxas C7510, C7511: wgmma groups serialised, the pipeline is lost
};

struct Cubin {
  std::string image;
  std::vector<std::string> names;  // of the request's kernels in the image, in their order
  std::string log;                 // the compiler's and ptxas -v, as they said it
};

struct CompileFailure {
  std::string sentence;  // first error line of the log
  std::string log;       // whole
};

// "nvrtc 13.0", or why there is none.
Expected<std::string, Missing> compiler_version();
Expected<Cubin, CompileFailure> compile(const CompileRequest& request);
// Reads ptxas -v lines (option -Xptxas=-v) out of a log.
ResourceUse resources_in(const std::string& log);

}  // namespace moegauge::cuda
