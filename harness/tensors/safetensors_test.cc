#include "harness/tensors/safetensors.h"

#include "harness/tensors/safetensors_testing.h"

namespace moegauge {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

SafetensorsHeader parse(const std::string& file) {
  return parse_safetensors_header(file, file.size(), "f");
}
SafetensorsHeader parse(const std::string& header, std::size_t data_bytes) {
  return parse(raw_safetensors(header, std::string(data_bytes, 'x')));
}
std::string error_of(const std::string& header, std::size_t data_bytes) {
  return input_error_of([&] { parse(header, data_bytes); });
}
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}
std::string text_of(const MappedBytes& mapped) {
  const auto bytes = mapped.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

const char* const two_tensors =
    R"({"__metadata__":{"format":"pt","":"é"},"b":{"dtype":"BF16","shape":[2,1],"data_offsets":[3,7]},)"
    R"("a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}  )";

TEST(SafetensorsHeader, KeepsOrderMetadataShapesAndOffsets) {
  const SafetensorsHeader header = parse(two_tensors, 7);
  EXPECT_THAT(header.metadata, ElementsAre(Pair("format", "pt"), Pair("", "é")));
  ASSERT_EQ(header.tensors.size(), 2U);
  EXPECT_EQ(header.tensors[0].name, "b");
  EXPECT_EQ(header.tensors[0].dtype, TensorDtype::bf16);
  EXPECT_THAT(header.tensors[0].shape, ElementsAre(2, 1));
  EXPECT_EQ(header.tensors[0].begin, 3U);
  EXPECT_EQ(header.tensors[0].end, 7U);
  EXPECT_EQ(header.find("a"), &header.tensors[1]);
  EXPECT_EQ(header.find("c"), nullptr);
  EXPECT_EQ(header.data_begin, 8 + std::string(two_tensors).size());
}

TEST(SafetensorsHeader, ReadsEveryDtypeWithItsSize) {
  const std::vector<std::pair<std::string, std::size_t>> sizes = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},     {"U32", 4},
      {"F32", 4},  {"I64", 8}, {"U64", 8}, {"F64", 8}};
  for (const auto& [name, size] : sizes) {
    const std::string end = std::to_string(3 * size);
    EXPECT_EQ(to_string(parse(one(name, "[3]", "[0," + end + "]"), 3 * size).tensors[0].dtype),
              name);
    EXPECT_THAT(error_of(one(name, "[4]", "[0," + end + "]"), 3 * size),
                HasSubstr("dtype, shape and data_offsets must agree"));
  }
}

TEST(SafetensorsHeader, ReadsScalarsEmptyTensorsAndEmptyFiles) {
  EXPECT_THAT(parse(one("F32", "[]", "[0,4]"), 4).tensors[0].shape, IsEmpty());
  EXPECT_EQ(parse(one("F32", "[3,0,2]", "[0,0]"), 0).tensors[0].bytes(), 0U);
  // Beside a zero even an absurd extent is a size: zero.
  const auto huge = parse(one("F64", "[9223372036854775807,9223372036854775807,0]", "[0,0]"), 0);
  EXPECT_EQ(huge.tensors[0].bytes(), 0U);
  EXPECT_THAT(parse("{}", 0).tensors, IsEmpty());
}

TEST(SafetensorsHeader, RefusesSizesThatOverflow) {
  // 2^62 doubles take 2^65 bytes, which 64 bits would show as 0; 2^32 * 2^32 elements as 0 too.
  for (const char* shape :
       {"[4611686018427387904]", "[4294967296,4294967296]", "[9223372036854775807,3]"}) {
    EXPECT_THAT(error_of(one("F64", shape, "[0,0]"), 0), HasSubstr("no size that a file can have"));
  }
}

TEST(SafetensorsHeader, NamesAnUnknownDtype) {
  EXPECT_THAT(
      error_of(one("F4", "[2]", "[0,1]"), 1),
      AllOf(HasSubstr("f:1: /t/dtype"), HasSubstr("unknown dtype \"F4\""), HasSubstr("F8_E8M0")));
}

TEST(SafetensorsHeader, RefusesOffsetsThatAreWrong) {
  EXPECT_THAT(error_of(one("U8", "[4]", "[0,4]"), 3), HasSubstr("ends at byte 4 of the data"));
  EXPECT_THAT(error_of(one("U8", "[4]", "[4,0]"), 4), HasSubstr("end lies before the begin"));
  EXPECT_THAT(error_of(one("U8", "[4]", "[0]"), 4), HasSubstr("[begin, end]"));
  EXPECT_THAT(error_of(one("U8", "[4]", "[-1,3]"), 4), HasSubstr("/t/data_offsets/0"));
  EXPECT_THAT(error_of(one("U8", "[4]", "[0,18446744073709551615]"), 4), HasSubstr("ends at byte"));
  EXPECT_THAT(error_of(one("U8", "[-4]", "[0,4]"), 4), HasSubstr("/t/shape/0"));
  EXPECT_THAT(error_of(one("U8", "[4.0]", "[0,4]"), 4), HasSubstr("/t/shape/0"));
}

TEST(SafetensorsHeader, RefusesOverlapsHolesAndBytesThatBelongToNone) {
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)" + a +
           R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + b + "}}";
  };
  EXPECT_THAT(error_of(two("[0,2]", "[1,3]"), 3),
              HasSubstr(R"(tensors "a" and "b" overlap at byte 1)"));
  EXPECT_THAT(error_of(two("[0,2]", "[0,2]"), 2), HasSubstr("overlap at byte 0"));
  EXPECT_THAT(error_of(two("[0,2]", "[3,5]"), 5), HasSubstr(R"(bytes 2 to 3)"));
  EXPECT_THAT(error_of(two("[1,3]", "[3,5]"), 5), HasSubstr(R"(bytes 0 to 1)"));
  EXPECT_THAT(error_of(two("[0,2]", "[2,4]"), 9), HasSubstr("5 bytes follow"));
}

TEST(SafetensorsHeader, RefusesWhatIsNoStrictHeader) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
                       R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
                       0),
              HasSubstr("duplicate key \"a\""));
  EXPECT_THAT(error_of(R"({"__metadata__":{"a":"1","a":"2"}})", 0), HasSubstr("duplicate key"));
  EXPECT_THAT(error_of(R"({"__metadata__":{"a":1}})", 0), HasSubstr("/__metadata__/a"));
  EXPECT_THAT(error_of(R"({"t":{"dtype":"U8","shape":[0]}})", 0), HasSubstr("data_offsets"));
  EXPECT_THAT(error_of(R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1}})", 0),
              HasSubstr("\"x\""));
  EXPECT_THAT(error_of(" {}", 0), HasSubstr("does not begin with"));
  EXPECT_THAT(error_of("[]", 0), HasSubstr("does not begin with"));
  EXPECT_THAT(error_of("", 0), HasSubstr("does not begin with"));
  EXPECT_THAT(error_of("{} {}", 0), HasSubstr("f:1:4"));
  EXPECT_THAT(error_of("{\"\xFF\":{}}", 0), HasSubstr("UTF-8"));
}

TEST(SafetensorsHeader, RefusesALengthThatIsTooLong) {
  std::string file = raw_safetensors("{}", "");
  file[0] = 3;
  EXPECT_THAT(input_error_of([&] { parse(file); }), HasSubstr("header of 3 bytes is cut after 2"));
  EXPECT_THAT(input_error_of([&] { parse(std::string(8, '\xFF') + "{}"); }),
              HasSubstr("header of 18446744073709551615 bytes, more than 100000000"));
}

TEST(SafetensorsHeader, ReadsAHeaderOf100MegabytesAndNoByteMore) {
  const std::string limit = "{}" + std::string(max_safetensors_header - 2, ' ');
  EXPECT_THAT(parse(limit, 0).tensors, IsEmpty());
  EXPECT_THAT(error_of(limit + " ", 0), HasSubstr("more than 100000000"));
}

TEST(SafetensorsHeader, RefusesAFileCutAtAnyByte) {
  const std::string whole = raw_safetensors(two_tensors, "abcdefg");
  ASSERT_NO_THROW(parse(whole));
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_THAT(input_error_of([&] { parse(whole.substr(0, bytes)); }), HasSubstr("f"))
        << "cut after " << bytes;
  }
}

TEST(SafetensorsFile, MapsTheBytesOfEachTensor) {
  const TemporaryFolder folder;
  const SafetensorsFile file(
      folder.write("x.safetensors", raw_safetensors(two_tensors, "abcdefg")));
  EXPECT_EQ(text_of(file.map(file.at("a"))), "abc");
  EXPECT_EQ(text_of(file.map(file.at("b"))), "defg");
  EXPECT_THAT(input_error_of([&] { file.at("bb"); }),
              AllOf(HasSubstr("x.safetensors: there is no tensor \"bb\""), HasSubstr("b")));
}

TEST(SafetensorsFile, MapsTensorsThatBeginAnywhereInAPage) {
  const TemporaryFolder folder;
  std::string data;
  for (int i = 0; i < 20000; ++i) data += static_cast<char>(i * 7 % 251);
  const std::string header =
      R"({"a":{"dtype":"U8","shape":[9001],"data_offsets":[0,9001]},"none":{"dtype":"F64","shape":[0],)"
      R"("data_offsets":[9001,9001]},"b":{"dtype":"U8","shape":[10999],"data_offsets":[9001,20000]}})";
  const SafetensorsFile file(folder.write("x.safetensors", raw_safetensors(header, data)));
  EXPECT_EQ(text_of(file.map(file.at("a"))), data.substr(0, 9001));
  EXPECT_EQ(text_of(file.map(file.at("b"))), data.substr(9001));
  EXPECT_EQ(text_of(file.map(file.at("none"))), "");
}

TEST(SafetensorsFile, SaysWhyAFileCannotBeRead) {
  const TemporaryFolder folder;
  EXPECT_THAT(input_error_of([&] { SafetensorsFile file(folder / "none"); }),
              HasSubstr("none: cannot read: No such file"));
  EXPECT_THAT(input_error_of([&] { SafetensorsFile file(folder.path()); }),
              HasSubstr("no regular file"));
  EXPECT_THAT(input_error_of([&] { SafetensorsFile file(folder.write("empty", "")); }),
              HasSubstr("0 bytes, too few"));
}

}  // namespace
}  // namespace moegauge
