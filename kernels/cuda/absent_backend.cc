#include "kernels/nvidia/absent_backend.h"

namespace moegauge {

const Backend& cuda_backend() {
  static const AbsentBackend backend("cuda", "cuda.h, nvrtc.h", "kernels/cuda/configs");
  return backend;
}

}  // namespace moegauge
