// The body of one module, compiled once per instruction set (CMakeLists.txt) and opened by gemm.cc.
// Only the C function below is visible outside.
#define EIGEN_DONT_PARALLELIZE  // the threads are ours
#include <Eigen/Core>
#include <cstdint>

namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Stride = Eigen::OuterStride<>;

}  // namespace

extern "C" __attribute__((visibility("default"))) void moegauge_gemm_abt(
    std::int64_t m, std::int64_t n, std::int64_t k, const double* a, std::int64_t lda,
    const double* b, std::int64_t ldb, double* c, std::int64_t ldc) {
  const Eigen::Map<const RowMajor, Eigen::Unaligned, Stride> left(a, m, k, Stride(lda));
  const Eigen::Map<const RowMajor, Eigen::Unaligned, Stride> right(b, n, k, Stride(ldb));
  Eigen::Map<RowMajor, Eigen::Unaligned, Stride> out(c, m, n, Stride(ldc));
  out.noalias() = left * right.transpose();
}
