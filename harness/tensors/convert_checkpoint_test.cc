#include "harness/tensors/convert_checkpoint.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/tensors/checkpoint.h"
#include "harness/tensors/safetensors_testing.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The matrix that reference/convert/mxfp8_to_block_test.cc works out by hand, rows under 2^0 and
// 2^-2; its block has the scale 1.
const std::string hand_values = {"\x7E\x38\xB8\x00\x80\x7E\x38\xB9\x01\x03", 10};
const std::string hand_scales = {127, 125};
const std::string hand_ocp = {"\x7E\x38\xB8\x00\x80\x6E\x28\xA9\x00\x01", 10};
const std::string hand_fnuz = {"\x7E\x38\xB8\x00\x00\x6E\x28\xA9\x00\x01", 10};
const std::string one_f32 = {"\x00\x00\x80\x3F", 4}, two_f32 = {"\x00\x00\x00\x40", 4};

struct Tensor {
  std::string name, dtype, shape, bytes;
};

std::string file_of(const std::vector<Tensor>& tensors, const std::string& metadata = "") {
  std::string header = "{" + metadata, data;
  for (const Tensor& t : tensors) {
    header += (header.size() > 1 ? ",\"" : "\"") + t.name + R"(":{"dtype":")" + t.dtype +
              R"(","shape":)" + t.shape + R"(,"data_offsets":[)" + std::to_string(data.size()) +
              "," + std::to_string(data.size() + t.bytes.size()) + "]}";
    data += t.bytes;
  }
  return raw_safetensors(header + "}", data);
}

Tensor values(const std::string& name) { return {name, "F8_E4M3", "[2,5]", hand_values}; }
Tensor scales(const std::string& name, const std::string& dtype = "F8_E8M0") {
  return {name, dtype, "[2,1]", hand_scales};
}

// "name dtype [shape]" of every tensor in order.
std::vector<std::string> listed(const SafetensorsFile& file) {
  std::vector<std::string> all;
  for (const TensorInfo& t : file.header().tensors) all.push_back(t.name + " " + describe(t));
  return all;
}
std::string bytes_of(const Checkpoint& checkpoint, const std::string& name) {
  const auto [file, tensor] = checkpoint.at(name);
  const MappedBytes mapped = file->map(*tensor);
  return {reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()};
}

ConvertReport convert(const fs::path& in, const fs::path& out, const ConvertOptions& options = {}) {
  ThreadPool pool(2);
  return convert_checkpoint(in, out, options, pool, [](const ConvertedTensor&) {});
}

struct Folder : TemporaryFolder {
  fs::path in = *this / "in.safetensors", out = *this / "out.safetensors";
  void given(const std::vector<Tensor>& tensors, const std::string& metadata = "") const {
    write("in.safetensors", file_of(tensors, metadata));
  }
  std::string error(const ConvertOptions& options = {}) const {
    std::string said = input_error_of([&] { convert(in, out, options); });
    EXPECT_THAT(names(), ElementsAre("in.safetensors"));  // nothing half done is left
    return said;
  }
};

TEST(ConvertCheckpoint, ConvertsPairsAndCopiesTheRestByteForByte) {
  const Folder folder;
  folder.given(
      {{"norm", "BF16", "[2]", "abcd"}, values("w"), scales("w_scale"), {"n", "U8", "[3]", "xyz"}},
      R"("__metadata__":{"format":"pt","by":"é"})");
  const ConvertReport report = convert(folder.in, folder.out);
  EXPECT_EQ(report.converted, 1);
  EXPECT_EQ(report.copied, 2);
  EXPECT_EQ(report.bytes_read, 4U + 10 + 2 + 3);
  const Checkpoint out(folder.out);
  EXPECT_THAT(listed(*out.shards()[0]), ElementsAre("norm BF16 [2]", "w F8_E4M3 [2, 5]",
                                                    "w_scale_inv F32 [1, 1]", "n U8 [3]"));
  EXPECT_EQ(bytes_of(out, "norm"), "abcd");
  EXPECT_EQ(bytes_of(out, "n"), "xyz");
  EXPECT_EQ(bytes_of(out, "w"), hand_ocp);
  EXPECT_EQ(bytes_of(out, "w_scale_inv"), one_f32);
  EXPECT_EQ(out.shards()[0]->header().metadata, (TensorMetadata{{"format", "pt"}, {"by", "é"}}));
}

TEST(ConvertCheckpoint, NormalisesToFnuz) {
  const Folder folder;
  folder.given({values("w"), scales("w_scale")});
  convert(folder.in, folder.out, {.target = {.fnuz = true}});
  EXPECT_EQ(bytes_of(Checkpoint(folder.out), "w"), hand_fnuz);
  EXPECT_EQ(bytes_of(Checkpoint(folder.out), "w_scale_inv"), two_f32);
}

TEST(ConvertCheckpoint, KnowsEachNameOfTheScalesAndBothDtypes) {
  const std::vector<std::pair<std::string, std::string>> names = {
      {"w", "w_scale"},           {"w", "w_scale_inv"},           {"w", "w.scale"},
      {"w", "w.scale_inv"},       {"m.weight", "m.weight_scale"}, {"m.weight", "m.scale"},
      {"m.weight", "m.scale_inv"}};
  for (const auto& [name, scale] : names) {
    for (const char* dtype : {"F8_E8M0", "U8"}) {
      const Folder folder;
      folder.given({scales(scale, dtype), values(name)});
      convert(folder.in, folder.out);
      EXPECT_THAT(listed(*Checkpoint(folder.out).shards()[0]),
                  ElementsAre(name + "_scale_inv F32 [1, 1]", name + " F8_E4M3 [2, 5]"));
    }
  }
}

TEST(ConvertCheckpoint, ConvertsStackedExpertsWithRaggedBlocks) {
  const Folder folder;
  // Two experts: the second with scales four times as large.
  folder.given({{"w", "F8_E4M3", "[2,2,5]", hand_values + hand_values},
                {"w_scale", "F8_E8M0", "[2,2,1]", hand_scales + std::string{'\x81', 127}}});
  convert(folder.in, folder.out, {.target = {.block_rows = 2, .block_cols = 4}});
  const Checkpoint out(folder.out);
  EXPECT_THAT(listed(*out.shards()[0]),
              ElementsAre("w F8_E4M3 [2, 2, 5]", "w_scale_inv F32 [2, 1, 2]"));
  const std::string bytes = bytes_of(out, "w_scale_inv");
  float block_scales[4];
  ASSERT_EQ(bytes.size(), sizeof block_scales);
  std::memcpy(block_scales, bytes.data(), sizeof block_scales);
  // Columns 0..3 reach 448; column 4 holds -0 and 3 * 2^-9 * 2^-2 (times 4 in the second expert).
  const float last = 3.0f / 2048;
  EXPECT_THAT(block_scales, ElementsAre(1.0f, last / 448, 4.0f, 4 * last / 448));
}

TEST(ConvertCheckpoint, CopiesE4m3ThatHasNoScalesPer1x32) {
  const Folder folder;
  folder.given({values("w"),
                scales("w_scale"),
                values("other"),
                {"other_scale", "F32", "[1,1]", one_f32},
                values("coarse"),
                {"coarse_scale_inv", "F8_E8M0", "[1,1]", "a"}});
  const ConvertReport report = convert(folder.in, folder.out);
  EXPECT_EQ(report.converted, 1);
  EXPECT_EQ(report.copied, 4);
  EXPECT_THAT(report.notes,
              ElementsAre(AllOf(HasSubstr("\"coarse\""), HasSubstr("F8_E8M0 [1, 1]"))));
  EXPECT_EQ(bytes_of(Checkpoint(folder.out), "coarse"), hand_values);
  EXPECT_EQ(bytes_of(Checkpoint(folder.out), "coarse_scale_inv"), "a");
}

TEST(ConvertCheckpoint, RefusesWhatIsAmbiguousOrNothing) {
  const Folder folder;
  folder.given({values("w")});
  EXPECT_THAT(folder.error(), HasSubstr("nothing to convert"));
  folder.given({values("w"), scales("w_scale"), scales("w.scale")});
  EXPECT_THAT(folder.error(), HasSubstr(R"(two scales, "w_scale" and "w.scale")"));
  folder.given({values("w"), scales("w_scale"), {"w_scale_inv", "F32", "[]", one_f32}});
  EXPECT_THAT(folder.error(), HasSubstr(R"(would be called "w_scale_inv", and there is such)"));
  folder.given({values("m"), values("m.weight"), scales("m.scale")});
  EXPECT_THAT(folder.error(), HasSubstr(R"(share the scales "m.scale")"));
}

TEST(ConvertCheckpoint, RefusesNonFiniteValuesByNameUnlessAllowed) {
  const Folder folder;
  std::string bad = hand_values;
  bad[7] = '\x7F';
  folder.given({values("a"), scales("a_scale"), {"w", "F8_E4M3", "[2,5]", bad}, scales("w_scale")});
  EXPECT_THAT(folder.error(),
              AllOf(HasSubstr("in.safetensors: tensor \"w\" holds 1 values"),
                    HasSubstr("the first at [1, 2]"), HasSubstr("--allow-nonfinite")));
  const ConvertReport report = convert(folder.in, folder.out, {.allow_non_finite = true});
  EXPECT_EQ(report.total.non_finite, 1);
  EXPECT_EQ(bytes_of(Checkpoint(folder.out), "w")[7], '\x7F');
}

TEST(ConvertCheckpoint, RefusesToReplaceItsInput) {
  const Folder folder;
  folder.given({values("w"), scales("w_scale")});
  const std::string before = file_text(folder.in);
  fs::create_hard_link(folder.in, folder / "same");
  for (const char* name : {"in.safetensors", "./in.safetensors", "same"}) {
    EXPECT_THAT(input_error_of([&] { convert(folder.in, folder / name); }),
                HasSubstr("it is what is being converted"));
  }
  EXPECT_EQ(file_text(folder.in), before);
}

TEST(ConvertCheckpoint, KeepsTheOldFileWhereItFails) {
  const Folder folder;
  std::string bad = hand_values;
  bad[0] = '\xFF';
  folder.given({{"w", "F8_E4M3", "[2,5]", bad}, scales("w_scale")});
  folder.write("out.safetensors", "old");
  input_error_of([&] { convert(folder.in, folder.out); });
  EXPECT_EQ(file_text(folder.out), "old");
  convert(folder.in, folder.out, {.allow_non_finite = true});
  EXPECT_NE(file_text(folder.out), "old");
  EXPECT_THAT(folder.names(), ElementsAre("in.safetensors", "out.safetensors"));
}

// Six tensors of 32 MB: what one process held at most, input and output in its own memory included.
TEST(ConvertCheckpoint, HoldsAtMostThreeTimesTheLargestTensor) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitiser's own memory would be counted";
#endif
  constexpr std::size_t rows = 4096, cols = 8192, bytes = rows * cols;
  const Folder folder;
  {
    std::string header = "{";
    std::size_t at = 0;
    for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
      header += std::string(header.size() > 1 ? "," : "") + "\"" + name +
                R"(":{"dtype":"F8_E4M3","shape":[4096,8192],"data_offsets":[)" +
                std::to_string(at) + "," + std::to_string(at + bytes) + R"(]},")" + name +
                R"(_scale":{"dtype":"U8","shape":[4096,256],"data_offsets":[)" +
                std::to_string(at + bytes) + "," + std::to_string(at + bytes + bytes / 32) + "]}";
      at += bytes + bytes / 32;
    }
    std::ofstream file(folder.in, std::ios::binary);
    file << raw_safetensors(header + "}", "");
    for (int i = 0; i < 6; ++i) {
      file << std::string(bytes, '\x38') << std::string(bytes / 32, '\x7F');
    }
  }
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    convert(folder.in, folder.out);
    ::_exit(0);
  }
  int status = -1;
  rusage used = {};
  ASSERT_EQ(::wait4(child, &status, 0, &used), child);
  EXPECT_EQ(status, 0);
  EXPECT_LT(used.ru_maxrss * std::int64_t{1024}, std::int64_t{3 * bytes});
}

TEST(ConvertCheckpoint, ConvertsEmptyTensors) {
  const Folder folder;
  folder.given({{"w", "F8_E4M3", "[0,4611686018427387904,5]", ""},
                {"w_scale", "F8_E8M0", "[0,4611686018427387904,1]", ""}});
  EXPECT_EQ(convert(folder.in, folder.out).converted, 1);
  EXPECT_EQ(bytes_of(Checkpoint(folder.out), "w_scale_inv"), "");
}

// Two shards: "w" in the first, its scales and "n" in the second; "v" and its scales in the first.
struct Shards : TemporaryFolder {
  fs::path in = *this / "in", out = *this / "out";
  Shards() {
    fs::create_directory(in);
    write("in/1.safetensors", file_of({values("w"), values("v"), scales("v_scale")},
                                      R"("__metadata__":{"shard":"1"})"));
    write("in/2.safetensors", file_of({scales("w_scale"), {"n", "U8", "[1]", "n"}}));
    write("in/3.safetensors", file_of({{"late_scale", "U8", "[2,1]", hand_scales}}));
    write("in/4.safetensors", file_of({values("late")}));
    write("in/config.json", "{}");
    write("in/model.safetensors.index.json",
          R"({"metadata":{"total_size":1,"kept":"yes"},"weight_map":{"w":"1.safetensors",
            "w_scale":"2.safetensors","v":"1.safetensors","v_scale":"1.safetensors",
            "n":"2.safetensors","late_scale":"3.safetensors","late":"4.safetensors"}})");
  }
};

TEST(ConvertCheckpoint, ConvertsShardsAndWritesANewIndex) {
  const Shards shards;
  convert(shards.in, shards.out);
  const Checkpoint out(shards.out);
  EXPECT_THAT(listed(*out.shards()[0]), ElementsAre("w F8_E4M3 [2, 5]", "w_scale_inv F32 [1, 1]",
                                                    "v F8_E4M3 [2, 5]", "v_scale_inv F32 [1, 1]"));
  EXPECT_THAT(out.shards()[0]->header().metadata, ElementsAre(testing::Pair("shard", "1")));
  for (const char* name : {"w", "v", "late"}) {
    EXPECT_EQ(bytes_of(out, name), hand_ocp);
    EXPECT_EQ(bytes_of(out, std::string(name) + "_scale_inv"), one_f32);
  }
  EXPECT_EQ(bytes_of(out, "n"), "n");
  const auto& metadata = out.index()->root().at("metadata");
  EXPECT_EQ(metadata.at("total_size"), 3 * (10 + 4) + 1);
  EXPECT_EQ(metadata.at("kept"), "yes");
  EXPECT_EQ(out.index()->root().at("weight_map").size(), 7U);
  // The shard that held nothing but scales is gone.
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(shards.out)) {
    names.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(names,
              testing::UnorderedElementsAre("1.safetensors", "2.safetensors", "4.safetensors",
                                            "model.safetensors.index.json"));
}

TEST(ConvertCheckpoint, ReplacesAFolderOnlyWhereNothingElseWouldBeLost) {
  const Shards shards;
  fs::create_directory(shards.out);
  convert(shards.in / "model.safetensors.index.json", shards.out);  // an empty folder
  shards.write("out/1.safetensors", "old");
  convert(shards.in, shards.out.string() + "/");
  EXPECT_NE(file_text(shards.out / "1.safetensors"), "old");
  shards.write("out/notes.txt", "mine");
  EXPECT_THAT(input_error_of([&] { convert(shards.in, shards.out); }),
              HasSubstr("it holds \"notes.txt\""));
  EXPECT_EQ(file_text(shards.out / "notes.txt"), "mine");
  EXPECT_THAT(input_error_of([&] { convert(shards.in, shards.in); }),
              HasSubstr("it is what is being converted"));
  EXPECT_THAT(
      input_error_of([&] { convert(shards.in / "model.safetensors.index.json", shards.in); }),
      HasSubstr("it is what is being converted"));
  EXPECT_THAT(shards.names(), ElementsAre("in", "out"));
}

TEST(ConvertCheckpoint, LeavesNoFolderWhereItFails) {
  const Shards shards;
  shards.write("in/4.safetensors", "cut");
  input_error_of([&] { convert(shards.in, shards.out); });
  std::string bad = hand_values;
  bad[0] = '\x7F';
  shards.write("in/4.safetensors", file_of({{"late", "F8_E4M3", "[2,5]", bad}}));
  EXPECT_THAT(input_error_of([&] { convert(shards.in, shards.out); }),
              HasSubstr("4.safetensors: tensor \"late\""));
  EXPECT_THAT(shards.names(), ElementsAre("in"));
}

}  // namespace
}  // namespace moegauge
