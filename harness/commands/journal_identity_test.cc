#include "harness/commands/journal_identity.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

namespace moegauge {
namespace {

namespace fs = std::filesystem;

// A shard of 20 MiB, as a checkpoint has them, if larger.
class LargeFile : public testing::Test {
 protected:
  LargeFile() {
    std::ofstream(file_, std::ios::binary) << std::string(std::size_t{20} << 20, 'a');
    written_ = fs::last_write_time(file_);
  }
  ~LargeFile() override { fs::remove(file_); }
  std::string header() const {
    const NamedFile named{"a file of weights", file_};
    return journal_header("s", {}, {}, {&named, 1}, {});
  }
  // Bytes [from, from + count) of other weights, under the first one's date.
  void overwrite(std::streamoff from, std::size_t count) const {
    std::fstream stream(file_, std::ios::binary | std::ios::in | std::ios::out);
    stream.seekp(from);
    stream << std::string(count, 'b');
    stream.close();
    fs::last_write_time(file_, written_);
  }

  fs::path file_ = fs::path(testing::TempDir()) / "large.safetensors";
  fs::file_time_type written_;
};

TEST_F(LargeFile, IsTheSameAsLongAsNobodyWritesIt) { EXPECT_EQ(header(), header()); }

TEST_F(LargeFile, IsAnotherOneWithAnotherDate) {
  const std::string before = header();
  fs::last_write_time(file_, written_ + std::chrono::milliseconds(1));
  EXPECT_NE(header(), before);
}

TEST_F(LargeFile, IsAnotherOneWithAnotherFirstByte) {
  const std::string before = header();
  overwrite(0, 1);
  EXPECT_NE(header(), before);
}

TEST_F(LargeFile, IsAnotherOneWithOtherTensorsUnderTheSameDate) {
  const std::string before = header();
  overwrite(std::streamoff{9} << 20, std::size_t{1} << 20);  // a tensor of 1 MiB
  EXPECT_NE(header(), before);
}

TEST_F(LargeFile, IsAnotherOneWithAnotherLastByte) {
  const std::string before = header();
  overwrite((std::streamoff{20} << 20) - 1, 1);
  EXPECT_NE(header(), before);
}

}  // namespace
}  // namespace moegauge
