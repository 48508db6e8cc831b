#include "kernels/cublaslt/library.h"

#include <gtest/gtest.h>

namespace moegauge::cublaslt {
namespace {

TEST(Library, IsThereOrSaysWhatIsMissing) {
  if (library()) {
    EXPECT_GE(library_version(), 120000u);
    EXPECT_EQ(library_name().rfind("cuBLASLt 1", 0), 0u) << library_name();
  } else {
    EXPECT_EQ(library().error().sentence, "no cuBLASLt (libcublasLt.so.13 not found)");
    EXPECT_EQ(library_version(), 0u);
    const auto fault = cuda::guarded([] { require_library(); });
    ASSERT_TRUE(fault.has_value());
    EXPECT_EQ(fault->kind, FaultKind::infrastructure);
  }
}

TEST(Library, NamesTheCallAndTheStatusOfAFault) {
  if (!library()) GTEST_SKIP() << library().error().sentence;
  const auto fault =
      cuda::guarded([] { check(CUBLAS_STATUS_ALLOC_FAILED, "cublasLtMatmul of 4 rows"); });
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->kind, FaultKind::out_of_memory);
  EXPECT_EQ(fault->sentence, "cublasLtMatmul of 4 rows: CUBLAS_STATUS_ALLOC_FAILED");
}

}  // namespace
}  // namespace moegauge::cublaslt
