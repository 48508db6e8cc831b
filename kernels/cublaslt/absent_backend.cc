#include "kernels/nvidia/absent_backend.h"

namespace moegauge {

const Backend& cublaslt_backend() {
  static const AbsentBackend backend("cublaslt", "cuda.h, nvrtc.h, cublasLt.h", "");
  return backend;
}

}  // namespace moegauge
