#include "harness/tensors/checkpoint.h"

#include "harness/tensors/safetensors_testing.h"

namespace moegauge {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string file_of(const std::string& name, char byte) {
  return raw_safetensors(R"({")" + name + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                         {byte});
}

// Two shards, tensor "a" in one.safetensors and "b" in two.safetensors.
struct Shards {
  TemporaryFolder folder;
  Shards() {
    folder.write("one.safetensors", file_of("a", '1'));
    folder.write("two.safetensors", file_of("b", '2'));
    map(R"("a":"one.safetensors","b":"two.safetensors")");
  }
  void map(const std::string& weight_map) const {
    folder.write("model.safetensors.index.json",
                 R"({"metadata":{"total_size":2},"weight_map":{)" + weight_map + "}}");
  }
  std::string error() const {
    return input_error_of([&] { Checkpoint checkpoint(folder.path()); });
  }
};

char byte_of(const Checkpoint& checkpoint, const std::string& name) {
  const Checkpoint::Place place = checkpoint.at(name);
  return static_cast<char>(place.file->map(*place.tensor).bytes()[0]);
}

TEST(Checkpoint, FindsTensorsThroughTheIndex) {
  const Shards shards;
  for (const auto& path : {shards.folder.path(), shards.folder / "model.safetensors.index.json"}) {
    const Checkpoint checkpoint(path);
    EXPECT_EQ(checkpoint.shards().size(), 2U);
    EXPECT_EQ(byte_of(checkpoint, "a"), '1');
    EXPECT_EQ(byte_of(checkpoint, "b"), '2');
    EXPECT_EQ(checkpoint.find("c").file, nullptr);
    EXPECT_THAT(input_error_of([&] { checkpoint.at("c"); }), HasSubstr("no tensor \"c\""));
  }
}

TEST(Checkpoint, IsOneFileWithoutAnIndex) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", file_of("a", '1'));
  EXPECT_EQ(byte_of(Checkpoint(folder.path()), "a"), '1');
  EXPECT_EQ(byte_of(Checkpoint(folder / "model.safetensors"), "a"), '1');
  folder.write("other.safetensors", file_of("a", '1'));
  EXPECT_THAT(input_error_of([&] { Checkpoint checkpoint(folder.path()); }),
              HasSubstr("2 safetensors files and no model.safetensors.index.json"));
}

TEST(Checkpoint, NamesTheTensorAndTheShardThatDoesNotHoldIt) {
  const Shards shards;
  shards.map(R"("a":"one.safetensors","b":"one.safetensors")");
  EXPECT_THAT(shards.error(),
              AllOf(HasSubstr("index.json:1: /weight_map/b"),
                    HasSubstr("\"b\" is not in the shard"), HasSubstr("one.safetensors")));
}

TEST(Checkpoint, NamesAMissingShardAndATensorOfIt) {
  const Shards shards;
  std::filesystem::remove(shards.folder / "two.safetensors");
  EXPECT_THAT(shards.error(), AllOf(HasSubstr("two.safetensors, which holds tensor \"b\""),
                                    HasSubstr("is missing")));
}

TEST(Checkpoint, RefusesATensorInTwoShards) {
  const Shards shards;
  shards.folder.write("two.safetensors",
                      raw_safetensors(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                      R"("b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                      "12"));
  EXPECT_THAT(shards.error(), AllOf(HasSubstr("two.safetensors: it holds tensor \"a\""),
                                    HasSubstr("one.safetensors")));
}

TEST(Checkpoint, RefusesShardsOutsideOfItsFolder) {
  const Shards shards;
  for (const char* name : {"../one.safetensors", "/etc/passwd", "..", "x/one.safetensors"}) {
    shards.map(R"("a":")" + std::string(name) + "\"");
    EXPECT_THAT(shards.error(), HasSubstr("no plain file name")) << name;
  }
}

TEST(Checkpoint, RefusesAnIndexThatIsNone) {
  const Shards shards;
  shards.map("");
  EXPECT_THAT(shards.error(), HasSubstr("names no shard"));
  shards.folder.write("model.safetensors.index.json", R"({"weights":{}})");
  EXPECT_THAT(shards.error(), HasSubstr("weight_map"));
  shards.map(R"("a":"one.safetensors","a":"one.safetensors")");
  EXPECT_THAT(shards.error(), HasSubstr("duplicate key"));
  shards.map(R"("a":1)");
  EXPECT_THAT(shards.error(), HasSubstr("/weight_map/a"));
}

}  // namespace
}  // namespace moegauge
