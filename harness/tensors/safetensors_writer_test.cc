#include "harness/tensors/safetensors_writer.h"

#include "harness/tensors/safetensors_testing.h"

namespace moegauge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

void write_two(const std::filesystem::path& file) {
  SafetensorsWriter writer(
      file, std::vector<FileTensor>{{"b", TensorDtype::bf16, {2, 1}}, {"a", TensorDtype::u8, {3}}},
      {{"format", "pt"}});
  writer.write(1, 1, bytes_of("YZ"));  // in any order
  writer.write(0, 0, bytes_of("abcd"));
  writer.write(1, 0, bytes_of("X"));
  writer.commit();
}

TEST(SafetensorsWriter, WritesExactlyTheFormat) {
  const TemporaryFolder folder;
  write_two(folder / "x.safetensors");
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,1],"data_offsets":[0,4]},)"
      R"("a":{"dtype":"U8","shape":[3],"data_offsets":[4,7]}})";
  const std::string padding((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(file_text(folder / "x.safetensors"), raw_safetensors(header + padding, "abcdXYZ"));
  EXPECT_THAT(folder.names(), ElementsAre("x.safetensors"));
}

TEST(SafetensorsWriter, LaysWidestFirstWhereTheGivenOrderWouldNotAlign) {
  const std::vector<FileTensor> tensors = {
      {"odd", TensorDtype::u8, {3}}, {"f", TensorDtype::f32, {1}}, {"h", TensorDtype::f16, {1}}};
  const SafetensorsLayout layout = lay_out_safetensors(tensors, {}, "f");
  const std::uint64_t head = layout.head.size();
  EXPECT_EQ(head % 8, 0U);
  EXPECT_THAT(layout.offset, ElementsAre(head + 6, head + 0, head + 4));
  EXPECT_EQ(layout.file_bytes, head + 9);
  const SafetensorsHeader header = parse_safetensors_header(layout.head, layout.file_bytes, "f");
  EXPECT_EQ(header.tensors[0].name, "odd");  // names keep their order
}

TEST(SafetensorsWriter, EscapesNames) {
  const std::vector<FileTensor> tensors = {{"quote\" back\\ line\n é", TensorDtype::u8, {0}}};
  const SafetensorsLayout layout = lay_out_safetensors(tensors, {{"\t", "\""}}, "f");
  const SafetensorsHeader header = parse_safetensors_header(layout.head, layout.file_bytes, "f");
  EXPECT_EQ(header.tensors[0].name, tensors[0].name);
  EXPECT_EQ(header.metadata[0].second, "\"");
}

TEST(SafetensorsWriter, RefusesTwoTensorsOfOneName) {
  const std::vector<FileTensor> tensors = {{"a", TensorDtype::u8, {1}},
                                           {"a", TensorDtype::u8, {1}}};
  EXPECT_THAT(input_error_of([&] { lay_out_safetensors(tensors, {}, "f"); }),
              HasSubstr("f: two tensors would be called \"a\""));
}

TEST(SafetensorsWriter, LeavesTheOldFileAndNothingElseWhereItIsNotCommitted) {
  const TemporaryFolder folder;
  folder.write("x.safetensors", "old");
  {
    SafetensorsWriter writer(folder / "x.safetensors",
                             std::vector<FileTensor>{{"a", TensorDtype::u8, {3}}}, {});
    writer.write(0, 0, bytes_of("ab"));
    EXPECT_THROW(writer.commit(), std::logic_error);  // a byte is missing
    EXPECT_THROW(writer.write(0, 2, bytes_of("cd")), std::logic_error);
  }
  EXPECT_EQ(file_text(folder / "x.safetensors"), "old");
  EXPECT_THAT(folder.names(), ElementsAre("x.safetensors"));
  write_two(folder / "x.safetensors");
  EXPECT_NE(file_text(folder / "x.safetensors"), "old");
}

TEST(SafetensorsWriter, KeepsASymbolicLink) {
  const TemporaryFolder folder;
  folder.write("target", "old");
  std::filesystem::create_symlink("target", folder / "link");
  write_two(folder / "link");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_NE(file_text(folder / "target"), "old");
}

TEST(SafetensorsWriter, SaysWhyItCannotWrite) {
  const TemporaryFolder folder;
  EXPECT_THAT(input_error_of([&] { write_two(folder / "none/x"); }),
              HasSubstr("cannot write: No such file"));
  EXPECT_THAT(input_error_of([&] { write_two(folder.path()); }), HasSubstr("Is a directory"));
  EXPECT_THAT(input_error_of([&] { write_two("/dev/null"); }), HasSubstr("no regular file"));
}

}  // namespace
}  // namespace moegauge
