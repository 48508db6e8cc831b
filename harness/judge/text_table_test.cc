#include "harness/judge/text_table.h"

#include <gtest/gtest.h>

namespace moegauge {
namespace {

TEST(TextTable, AlignsColumnsAndEndsNoLineInSpaces) {
  TextTable table({Align::left, Align::right, Align::left});
  table.add({"a", "1", "x"});
  table.add({"bcd", "22", ""});
  EXPECT_EQ(table.str(), "a     1  x\nbcd  22\n");
}

TEST(TextTable, CountsCharactersNotBytes) {
  TextTable table({Align::left, Align::left});
  table.add({"\xC3\xA9", "x"});  // e acute: two bytes, one column
  table.add({"ab", "y"});
  EXPECT_EQ(table.str(), "\xC3\xA9   x\nab  y\n");
}

TEST(TextTable, WithoutRowsIsEmpty) { EXPECT_EQ(TextTable({Align::left}).str(), ""); }

}  // namespace
}  // namespace moegauge
