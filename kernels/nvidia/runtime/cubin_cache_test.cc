#include "kernels/nvidia/runtime/cubin_cache.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace moegauge::cuda {
namespace {

namespace fs = std::filesystem;

class CubinCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto version = compiler_version(); !version) GTEST_SKIP() << version.error().sentence;
    std::string name = (fs::temp_directory_path() / "cubin_cache_test.XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }
  static CompileRequest request(const std::string& factor) {
    return {.main = {"kernel.cu",
                     "#include \"factor.cuh\"\n__global__ void scale(float* x) { x[0] "
                     "*= factor; }"},
            .includes = {{"factor.cuh", "__device__ constexpr float factor = " + factor + ";\n"}},
            .options = {"-std=c++17"},
            .arch = "sm_90a",
            .kernels = {"scale"}};
  }
  fs::path only_entry() const { return fs::directory_iterator(folder_)->path(); }

  fs::path folder_;
};

TEST_F(CubinCacheTest, CompilesOnceAndThenReadsMapAndDisk) {
  CubinCache first(folder_);
  const auto made = first.get(request("2.f"));
  ASSERT_TRUE(made.has_value());
  EXPECT_TRUE(made->compiled);
  EXPECT_FALSE(first.get(request("2.f"))->compiled);
  CubinCache second(folder_);
  const auto found = second.get(request("2.f"));
  EXPECT_FALSE(found->compiled);
  EXPECT_EQ(found->cubin->image, made->cubin->image);
}

TEST_F(CubinCacheTest, AChangedIncludeOptionOrArchitectureIsAnotherKernel) {
  CubinCache cache(folder_);
  const std::string hash = cache.get(request("2.f"))->hash;
  EXPECT_NE(cache.get(request("3.f"))->hash, hash);
  CompileRequest other = request("2.f");
  other.options.push_back("-lineinfo");
  EXPECT_NE(cache.get(other)->hash, hash);
  other = request("2.f");
  other.arch = "sm_80";
  EXPECT_NE(cache.get(other)->hash, hash);
}

TEST_F(CubinCacheTest, ACutOrDamagedEntryIsCompiledAgain) {
  ASSERT_TRUE(CubinCache(folder_).get(request("2.f")).has_value());
  const fs::path entry = only_entry();
  const auto size = fs::file_size(entry);
  for (const std::uintmax_t cut : {std::uintmax_t{0}, std::uintmax_t{5}, size / 2, size - 1}) {
    fs::resize_file(entry, cut);
    EXPECT_TRUE(CubinCache(folder_).get(request("2.f"))->compiled) << "cut at " << cut;
    EXPECT_EQ(fs::file_size(entry), size);
  }
  std::fstream damage(entry, std::ios::in | std::ios::out | std::ios::binary);
  damage.seekp(static_cast<std::streamoff>(size - 40));
  damage.put('\x5a');
  damage.close();
  EXPECT_TRUE(CubinCache(folder_).get(request("2.f"))->compiled);
}

TEST_F(CubinCacheTest, AnEntryOfAnotherKeyUnderTheSameNameIsNotUsed) {
  CubinCache cache(folder_);
  const std::string two = cache.get(request("2.f"))->hash;
  const auto three = cache.get(request("3.f"));
  fs::copy_file(folder_ / (three->hash + ".cubin"), folder_ / (two + ".cubin"),
                fs::copy_options::overwrite_existing);
  const auto again = CubinCache(folder_).get(request("2.f"));
  EXPECT_TRUE(again->compiled);
  EXPECT_NE(again->cubin->image, three->cubin->image);
}

TEST_F(CubinCacheTest, ManyProcessesShareOneFolder) {
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(CubinCache(folder_).get(request("2.f")).has_value() ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_FALSE(CubinCache(folder_).get(request("2.f"))->compiled);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}), 1)
      << "no temporary file is left behind";
}

TEST_F(CubinCacheTest, AFolderThatCannotBeMadeCostsOnlyTheCache) {
  std::ofstream(folder_ / "file") << "not a folder";
  CubinCache cache(folder_ / "file" / "below");
  EXPECT_TRUE(cache.get(request("2.f")).has_value());
}

}  // namespace
}  // namespace moegauge::cuda
