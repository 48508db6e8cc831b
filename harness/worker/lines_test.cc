#include "harness/worker/lines.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

namespace moegauge {
namespace {

class Lines : public ::testing::Test {
 protected:
  Lines() {
    EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::fcntl(ends_[1], F_SETFL, O_NONBLOCK), 0);
    std::signal(SIGPIPE, SIG_IGN);
  }
  ~Lines() override {
    if (ends_[0] >= 0) ::close(ends_[0]);
    ::close(ends_[1]);
  }

  std::array<int, 2> ends_ = {};
  const std::string larger_than_a_pipe_ = std::string(std::size_t{1} << 20, 'x');
};

TEST_F(Lines, AWriterGivesUpOnAReaderThatHangs) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(write_line(ends_[1], larger_than_a_pipe_, 0.05), Written::too_slow);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST_F(Lines, AWriterWaitsForAReaderThatIsSlow) {
  std::string line;
  std::thread reader([&] { LineReader(ends_[0]).read(line); });
  EXPECT_EQ(write_line(ends_[1], larger_than_a_pipe_, 60), Written::whole);
  reader.join();
  EXPECT_EQ(line, larger_than_a_pipe_);
}

TEST_F(Lines, AWriterSeesThatTheReaderIsGone) {
  ::close(ends_[0]);
  ends_[0] = -1;
  EXPECT_EQ(write_line(ends_[1], "late", 1), Written::reader_gone);
}

}  // namespace
}  // namespace moegauge
