#include "kernels/nvidia/runtime/shared_library.h"

#include <gtest/gtest.h>

#include <array>

namespace moegauge::cuda {
namespace {

TEST(SharedLibrary, NamesTheFirstCandidateWhenNoneIsThere) {
  static constexpr std::array names = {"libmoegauge-absent.so.1", "libmoegauge-absent.so"};
  const auto library = SharedLibrary::open("driver", names);
  ASSERT_FALSE(library.has_value());
  EXPECT_EQ(library.error().sentence, "no driver (libmoegauge-absent.so.1 not found)");
}

TEST(SharedLibrary, FallsBackToALaterNameAndBindsFunctions) {
  static constexpr std::array names = {"libmoegauge-absent.so.1", "libm.so.6"};
  const auto library = SharedLibrary::open("mathematics", names);
  ASSERT_TRUE(library.has_value());
  double (*cosine)(double) = nullptr;
  ASSERT_TRUE(library->find("cos", cosine));
  EXPECT_EQ(cosine(0.0), 1.0);
  void (*absent)() = nullptr;
  EXPECT_FALSE(library->find("no_such_function", absent));
}

}  // namespace
}  // namespace moegauge::cuda
