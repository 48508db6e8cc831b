#include "kernels/nvidia/runtime/device.h"

#include <gtest/gtest.h>

#include <array>

namespace moegauge::cuda {
namespace {

TEST(Driver, IsThereOrSaysWhatIsMissing) {
  if (driver()) GTEST_SKIP() << "this machine has a driver";
  EXPECT_EQ(driver().error().sentence, "no driver (libcuda.so.1 not found)");
}

TEST(Guarded, GivesTheFaultOfAThrownFailure) {
  const auto fault = guarded([] { throw CudaFault({FaultKind::out_of_memory, "cuMemAlloc: no"}); });
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->kind, FaultKind::out_of_memory);
  EXPECT_FALSE(guarded([] {}).has_value());
}

TEST(RequireDriver, IsAnInfrastructureFaultWithoutADriver) {
  if (driver()) GTEST_SKIP() << "this machine has a driver";
  const auto fault = guarded([] { require_driver(); });
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->kind, FaultKind::infrastructure);
}

// Runs only where there is a GPU: what was uploaded comes back after a captured copy was replayed.
TEST(Graph, ReplaysACapturedCopy) {
  if (!driver()) GTEST_SKIP() << driver().error().sentence;
  int count = 0;
  if (driver()->device_get_count(&count) != CUDA_SUCCESS || count == 0) GTEST_SKIP() << "no device";
  Gpu::get(0);
  const Stream stream;
  const Buffer from(64), to(64);
  std::array<std::byte, 64> sent = {}, got = {};
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(3 * i + 1);
  from.upload(stream, sent);
  const Graph graph = Graph::capture(stream, [&] { to.copy_from(stream, from); });
  graph.launch(stream);
  to.download(stream, got);
  stream.synchronize();
  EXPECT_EQ(got, sent);
}

}  // namespace
}  // namespace moegauge::cuda
