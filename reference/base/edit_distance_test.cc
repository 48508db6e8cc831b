#include "reference/base/edit_distance.h"

#include <gtest/gtest.h>

namespace moegauge {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsSubstitutionsAndSwapsAsOne) {
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("tokens", "tokens"), 0u);
  EXPECT_EQ(edit_distance("tokns", "tokens"), 1u);
  EXPECT_EQ(edit_distance("tokkens", "tokens"), 1u);
  EXPECT_EQ(edit_distance("tokans", "tokens"), 1u);
  EXPECT_EQ(edit_distance("tokesn", "tokens"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);  // Levenshtein's textbook pair
  EXPECT_EQ(edit_distance("ca", "abc"), 3u);          // the pair that tells this from full Damerau
  EXPECT_EQ(edit_distance("Tokens", "tOKENS"), 0u);
}

}  // namespace
}  // namespace moegauge
