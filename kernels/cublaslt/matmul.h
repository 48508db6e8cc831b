// One expert's GEMM by the library: D [rows, m] = X [rows, k] times W [m, k] transposed, all
// row-major. To the library, which thinks in columns, that is D^T = W^T^T X^T: the form that FP8
// needs.
#pragma once

#include <map>

#include "kernels/cublaslt/library.h"
#include "kernels/cublaslt/schemes/library_scheme.h"
#include "kernels/nvidia/runtime/device.h"

namespace moegauge::cublaslt {

enum class SumType : std::uint8_t { activation_dtype, fp32 };

struct MatmulFormat {
  std::int64_t m = 0, k = 0;  // outputs, contracted
  int element_bytes = 2;      // of both operands: 1 is E4M3
  Scaling scaling = Scaling::none;
  Dtype dtype = Dtype::bf16;
  SumType out = SumType::activation_dtype;
};

struct MatmulOperands {
  CUdeviceptr weights = 0, rows = 0, out = 0;
  CUdeviceptr weight_scale = 0, row_scale = 0;
};

// Bytes of scratch that the library may use, as is usual on Hopper.
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

// The algorithm is the library's own choice, asked for once for each number of rows. Sums are fp32:
// fast accumulation is off, and parts of K are added in fp32.
class Matmul {
 public:
  explicit Matmul(const MatmulFormat& format);
  ~Matmul();
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  // Throws CudaFault, with the shape where the library has no algorithm.
  void run(const cuda::Stream& stream, std::int64_t rows, const MatmulOperands& operands,
           const cuda::Buffer& workspace);

 private:
  struct Chosen {
    cublasLtMatrixLayout_t rows = nullptr, out = nullptr;
    cublasLtMatmulAlgo_t algorithm = {};
  };
  const Chosen& chosen(std::int64_t rows);

  MatmulFormat format_;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  cublasLtMatrixLayout_t weights_ = nullptr;
  std::map<std::int64_t, Chosen> chosen_;  // by rows
};

}  // namespace moegauge::cublaslt
