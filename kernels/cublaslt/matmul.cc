#include "kernels/cublaslt/matmul.h"

#include <numeric>

namespace moegauge::cublaslt {

using cuda::CudaFault;

namespace {

// Of cublasLt.h 12.9 and later; earlier headers lack the names.
constexpr auto row_scale_mode = static_cast<cublasLtMatmulDescAttributes_t>(32);
constexpr auto weight_scale_mode = static_cast<cublasLtMatmulDescAttributes_t>(31);
constexpr std::int32_t outer_vectors = 3, vectors_of_128 = 4, blocks_of_128 = 5;

cudaDataType_t half_type(Dtype dtype) { return dtype == Dtype::bf16 ? CUDA_R_16BF : CUDA_R_16F; }
cudaDataType_t operand_type(const MatmulFormat& f) {
  return f.element_bytes == 1 ? CUDA_R_8F_E4M3 : half_type(f.dtype);
}
cudaDataType_t out_type(const MatmulFormat& f) {
  return f.out == SumType::fp32 ? CUDA_R_32F : half_type(f.dtype);
}
int out_bytes(const MatmulFormat& f) { return f.out == SumType::fp32 ? 4 : 2; }

template <typename Value>
void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t which, Value value) {
  check(require_library().desc_set(desc, which, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute");
}
template <typename Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t which,
         Value value) {
  check(require_library().preference_set(preference, which, &value, sizeof value),
        "cublasLtMatmulPreferenceSetAttribute");
}

// Column-major [rows, columns], which is our row-major [columns, rows].
cublasLtMatrixLayout_t layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  check(require_library().layout_create(&made, type, static_cast<std::uint64_t>(rows),
                                        static_cast<std::uint64_t>(columns), rows),
        "cublasLtMatrixLayoutCreate");
  return made;
}

// An expert's part of an allocation begins at a multiple of this many bytes.
std::uint32_t alignment(std::int64_t pitch_bytes) {
  return static_cast<std::uint32_t>(std::gcd<std::int64_t>(pitch_bytes, 256));
}

std::string in_words(const MatmulFormat& f, std::int64_t rows) {
  static constexpr const char* scales[] = {"no scales", "a scale per tensor", "outer-vector scales",
                                           "scales per 128x128 and 1x128"};
  return std::to_string(rows) + " rows by [" + std::to_string(f.m) + ", " + std::to_string(f.k) +
         "], " +
         (f.element_bytes == 1     ? "E4M3"
          : f.dtype == Dtype::bf16 ? "bf16"
                                   : "fp16") +
         " with " + scales[static_cast<std::size_t>(f.scaling)] + ", output in " +
         (f.out == SumType::fp32   ? "fp32"
          : f.dtype == Dtype::bf16 ? "bf16"
                                   : "fp16");
}

}  // namespace

Matmul::Matmul(const MatmulFormat& format) : format_(format) {
  const Library& l = require_library();
  check(l.desc_create(&desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  set(desc_, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  set(desc_, CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  if (format.element_bytes == 1) set(desc_, CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{0});
  if (format.scaling == Scaling::outer_vectors) {
    set(desc_, weight_scale_mode, outer_vectors);
    set(desc_, row_scale_mode, outer_vectors);
  }
  if (format.scaling == Scaling::blocks) {
    set(desc_, weight_scale_mode, blocks_of_128);
    set(desc_, row_scale_mode, vectors_of_128);
  }
  check(l.preference_create(&preference_), "cublasLtMatmulPreferenceCreate");
  set(preference_, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  set(preference_, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  const std::uint32_t in = alignment(format.k * format.element_bytes),
                      out = alignment(format.m * out_bytes(format));
  set(preference_, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, in);
  set(preference_, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, in);
  set(preference_, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, out);
  set(preference_, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, out);
  weights_ = layout(operand_type(format), format.k, format.m);
}

Matmul::~Matmul() {
  const Library& l = require_library();
  for (const auto& [rows, chosen] : chosen_) {
    l.layout_destroy(chosen.rows);
    l.layout_destroy(chosen.out);
  }
  if (weights_ != nullptr) l.layout_destroy(weights_);
  if (preference_ != nullptr) l.preference_destroy(preference_);
  if (desc_ != nullptr) l.desc_destroy(desc_);
}

const Matmul::Chosen& Matmul::chosen(std::int64_t rows) {
  if (const auto found = chosen_.find(rows); found != chosen_.end()) return found->second;
  Chosen& made = chosen_[rows];
  made.rows = layout(operand_type(format_), format_.k, rows);
  made.out = layout(out_type(format_), format_.m, rows);
  cublasLtMatmulHeuristicResult_t result = {};
  int count = 0;
  const cublasStatus_t status =
      require_library().get_heuristic(library_handle(), desc_, weights_, made.rows, made.out,
                                      made.out, preference_, 1, &result, &count);
  if (status != CUBLAS_STATUS_SUCCESS || count == 0) {
    throw CudaFault({FaultKind::error, library_name() + " has no algorithm for " +
                                           in_words(format_, rows) + " (" +
                                           require_library().get_status_name(status) + ")"});
  }
  made.algorithm = result.algo;
  return made;
}

void Matmul::run(const cuda::Stream& stream, std::int64_t rows, const MatmulOperands& operands,
                 const cuda::Buffer& workspace) {
  const auto pointer = [](CUdeviceptr address) {
    return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): of the device
  };
  if (format_.scaling != Scaling::none) {
    set(desc_, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, pointer(operands.weight_scale));
    set(desc_, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, pointer(operands.row_scale));
  }
  const Chosen& use = chosen(rows);
  const float one = 1, zero = 0;
  check(require_library().matmul(library_handle(), desc_, &one, pointer(operands.weights), weights_,
                                 pointer(operands.rows), use.rows, &zero, pointer(operands.out),
                                 use.out, pointer(operands.out), use.out, &use.algorithm,
                                 pointer(workspace.get()), workspace_bytes, stream.get()),
        "cublasLtMatmul of " + in_words(format_, rows));
}

}  // namespace moegauge::cublaslt
