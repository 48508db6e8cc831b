#include "reference/base/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "reference/base/input_error.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;

class TextFile : public testing::Test {
 protected:
  TextFile() : folder_(fs::path(testing::TempDir()) / ("text_file_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~TextFile() override { fs::remove_all(folder_); }

  static std::string refusal(const fs::path& file) {
    try {
      read_text_file(file);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  }

  fs::path folder_;
};

TEST_F(TextFile, IsReadWholeWithItsNulBytes) {
  const std::string text("a\0b\n", 4);
  std::ofstream(folder_ / "t", std::ios::binary) << text;
  EXPECT_EQ(read_text_file(folder_ / "t"), text);
}

TEST_F(TextFile, IsReadThroughALink) {
  std::ofstream(folder_ / "t") << "x";
  fs::create_symlink("t", folder_ / "link");
  EXPECT_EQ(read_text_file(folder_ / "link"), "x");
}

TEST_F(TextFile, ThatIsNoRegularFileIsRefusedWithoutWaiting) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal(folder_ / "pipe"), EndsWith("it is a pipe; a regular file is expected"));
  EXPECT_THAT(refusal(folder_), EndsWith("it is a folder; a regular file is expected"));
  EXPECT_THAT(refusal("/dev/zero"), EndsWith("it is a device; a regular file is expected"));
}

TEST_F(TextFile, ThatCannotBeReadSaysWhy) {
  EXPECT_THAT(refusal(folder_ / "none"), HasSubstr("No such file or directory; give the path"));
  std::ofstream(folder_ / "secret") << "x";
  fs::permissions(folder_ / "secret", fs::perms::none);
  if (::geteuid() != 0) {
    EXPECT_THAT(refusal(folder_ / "secret"), HasSubstr("Permission denied; give the path"));
  }
}

TEST_F(TextFile, ThatIsHugeIsRefusedBeforeItIsRead) {
  std::ofstream(folder_ / "huge") << "x";
  fs::resize_file(folder_ / "huge", std::uintmax_t{1} << 40);  // sparse
  EXPECT_THAT(refusal(folder_ / "huge"), EndsWith("larger than 1 GiB; a text file is expected"));
}

}  // namespace
}  // namespace moegauge
