#include "reference/base/fnv1a.h"

#include <gtest/gtest.h>

namespace moegauge {
namespace {

// Test vectors of the FNV authors: offset basis for "", and "a".
TEST(Fnv1a, IsThatOfItsAuthors) {
  EXPECT_EQ(fnv1a_hex(""), "cbf29ce484222325");
  EXPECT_EQ(fnv1a_hex("a"), "af63dc4c8601ec8c");
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cu);
}

}  // namespace
}  // namespace moegauge
