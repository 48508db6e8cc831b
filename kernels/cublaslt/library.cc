#include "kernels/cublaslt/library.h"

#include <array>

namespace moegauge::cublaslt {

using cuda::CudaFault;
using cuda::Missing;
using cuda::SharedLibrary;

namespace {

Expected<Library, Missing> open_library() {
  static constexpr std::array names = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
  // Never closed: it keeps state of its own on the device.
  static Expected<SharedLibrary, Missing> file = SharedLibrary::open("cuBLASLt", names);
  if (!file) return Unexpected{file.error()};
  Library l = {};
  const bool whole = file->find("cublasLtCreate", l.create) &&
                     file->find("cublasLtGetVersion", l.get_version) &&
                     file->find("cublasLtGetStatusName", l.get_status_name) &&
                     file->find("cublasLtMatmul", l.matmul) &&
                     file->find("cublasLtMatmulAlgoGetHeuristic", l.get_heuristic) &&
                     file->find("cublasLtMatmulDescCreate", l.desc_create) &&
                     file->find("cublasLtMatmulDescDestroy", l.desc_destroy) &&
                     file->find("cublasLtMatmulDescSetAttribute", l.desc_set) &&
                     file->find("cublasLtMatrixLayoutCreate", l.layout_create) &&
                     file->find("cublasLtMatrixLayoutDestroy", l.layout_destroy) &&
                     file->find("cublasLtMatmulPreferenceCreate", l.preference_create) &&
                     file->find("cublasLtMatmulPreferenceDestroy", l.preference_destroy) &&
                     file->find("cublasLtMatmulPreferenceSetAttribute", l.preference_set);
  if (!whole) {
    return Unexpected{Missing{"cuBLASLt too old (" + file->name() + " lacks a call of CUDA 12.0)"}};
  }
  return l;
}

FaultKind kind_of(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_ALLOC_FAILED) return FaultKind::out_of_memory;
  return status == CUBLAS_STATUS_NOT_INITIALIZED ? FaultKind::infrastructure : FaultKind::error;
}

}  // namespace

const Expected<Library, Missing>& library() {
  static const Expected<Library, Missing> opened = open_library();
  return opened;
}

std::size_t library_version() { return library() ? library()->get_version() : 0; }

std::string library_name() {
  const std::size_t version = library_version();
  return "cuBLASLt " + std::to_string(version / 10000) + "." +
         std::to_string(version % 10000 / 100) + "." + std::to_string(version % 100);
}

const Library& require_library() {
  if (!library()) throw CudaFault({FaultKind::infrastructure, library().error().sentence});
  return *library();
}

cublasLtHandle_t library_handle() {
  static const cublasLtHandle_t handle = [] {
    cublasLtHandle_t made = nullptr;
    check(require_library().create(&made), "cublasLtCreate");
    return made;
  }();
  return handle;
}

void check(cublasStatus_t status, const std::string& call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw CudaFault({kind_of(status), call + ": " + require_library().get_status_name(status)});
}

}  // namespace moegauge::cublaslt
