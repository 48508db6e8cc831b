// cuBLASLt, opened at run time: the calls that this backend makes. Signatures are the toolkit's
// (cublasLt.h).
#pragma once

#include <cublasLt.h>

#include "kernels/nvidia/runtime/device.h"
#include "kernels/nvidia/runtime/shared_library.h"

namespace moegauge::cublaslt {

struct Library {
  decltype(::cublasLtCreate)* create;
  decltype(::cublasLtGetVersion)* get_version;
  decltype(::cublasLtGetStatusName)* get_status_name;
  decltype(::cublasLtMatmul)* matmul;
  decltype(::cublasLtMatmulAlgoGetHeuristic)* get_heuristic;
  decltype(::cublasLtMatmulDescCreate)* desc_create;
  decltype(::cublasLtMatmulDescDestroy)* desc_destroy;
  decltype(::cublasLtMatmulDescSetAttribute)* desc_set;
  decltype(::cublasLtMatrixLayoutCreate)* layout_create;
  decltype(::cublasLtMatrixLayoutDestroy)* layout_destroy;
  decltype(::cublasLtMatmulPreferenceCreate)* preference_create;
  decltype(::cublasLtMatmulPreferenceDestroy)* preference_destroy;
  decltype(::cublasLtMatmulPreferenceSetAttribute)* preference_set;
};

// Opened once per process, or why it cannot be.
const Expected<Library, cuda::Missing>& library();
// 130100 for 13.1.0; 0 where there is none.
std::size_t library_version();
// "cuBLASLt 13.1.0".
std::string library_name();

// The library, where it is known to be there; throws CudaFault with the reason where it is not.
const Library& require_library();
// Of the current device; made once and kept.
cublasLtHandle_t library_handle();
// Throws CudaFault naming the call unless `status` is a success.
void check(cublasStatus_t status, const std::string& call);

}  // namespace moegauge::cublaslt
