// A conversion that is killed leaves no half-written result: the old one, or the new one whole.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "harness/tensors/convert_checkpoint.h"
#include "harness/tensors/safetensors_testing.h"

namespace moegauge {
namespace {

// 8192 x 1024 ones under the scale 1.
std::string large_file() {
  constexpr std::size_t values = std::size_t{8192} * 1024, scales = values / 32;
  return raw_safetensors(
      R"({"w":{"dtype":"F8_E4M3","shape":[8192,1024],"data_offsets":[0,8388608]},)"
      R"("w_scale":{"dtype":"U8","shape":[8192,32],"data_offsets":[8388608,8650752]}})",
      std::string(values, 0x38) + std::string(scales, 127));
}

void convert(const TemporaryFolder& folder) {
  ThreadPool pool(2);
  convert_checkpoint(folder / "in.safetensors", folder / "out.safetensors", {}, pool,
                     [](const ConvertedTensor&) {});
}

TEST(KilledConversion, LeavesTheOldFileOrTheNewOneWhole) {
  const TemporaryFolder folder;
  folder.write("in.safetensors", large_file());
  convert(folder);
  const std::string whole = file_text(folder / "out.safetensors");
  int old = 0;
  for (int milliseconds = 0; milliseconds < 40; milliseconds += 2) {
    folder.write("out.safetensors", "old");
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      convert(folder);
      ::_exit(0);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const std::string found = file_text(folder / "out.safetensors");
    EXPECT_TRUE(found == "old" || found == whole) << "after " << milliseconds << " ms";
    old += found == "old";
  }
  EXPECT_GT(old, 0);  // at least the one that was killed at once
}

}  // namespace
}  // namespace moegauge
