#include "harness/tune/table_file.h"

#include <gtest/gtest.h>

#include "harness/json/document.h"

namespace moegauge {
namespace {

TEST(TableFile, IsReadBackAsItWas) {
  const ConfigTable table{.entries = {{16, {.values = {{"BLOCK_SIZE_M", 32}, {"num_stages", 4}}}},
                                      {2, {.values = {{"BLOCK_SIZE_M", 8}}}}},
                          .metadata = {{"scheme", "fp8_block"}, {"note", "a \"quoted\" one"}}};
  const std::string text = table_text(table);
  const ConfigTable read = read_config_table(JsonDocument::parse(text, "t"), "t");
  EXPECT_EQ(read.entries, table.entries);
  EXPECT_EQ(read.metadata, table.metadata);
  EXPECT_TRUE(read.warnings.empty()) << "in the order of batch sizes, as engines look them up";
  EXPECT_LT(text.find("\"2\""), text.find("\"16\""));
}

}  // namespace
}  // namespace moegauge
