// Files of one GB: a result cannot be that large, and what a person gave by mistake is refused in a
// line and in seconds.
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "harness/commands/command_line_testing.h"
#include "harness/history/store.h"

namespace moegauge {
namespace {

using testing::HasSubstr;

class HugeFile : public CommandLine {
 protected:
  // Sparse: it takes no room on the disk.
  std::string sparse(const std::string& name, const std::string& begin, std::size_t bytes) {
    const std::string file = write_text(name, begin);
    EXPECT_EQ(::truncate(file.c_str(), static_cast<off_t>(bytes)), 0);
    return file;
  }
  void refuses(const std::vector<std::string>& words) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(run(words), 2) << testing::PrintToString(words);
    EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 1) << err_.substr(0, 1000);
    EXPECT_LT(err_.size(), 2000u);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  }
};

TEST_F(HugeFile, IsRefusedInOneLineWhereverItIsGiven) {
  constexpr std::size_t gigabyte = 1'000'000'000, two = std::size_t{2} << 30;
  const std::string r = path("r.json");
  for (const std::size_t bytes : {gigabyte, two}) {
    const std::string huge = sparse("huge.json", "{\"schema\": \"moegauge.result/1\",", bytes);
    refuses({"gate", huge, "--baseline", r});
    refuses({"gate", r, "--baseline", huge});
    refuses({"history", "add", huge, "--db", path("h.db")});
    refuses({"merge", huge, "--out", path("whole.json")});
    refuses({"gate", r, "--baseline", r, "--policy", huge});
    refuses({"gate", r, "--baseline", r, "--calibration", huge});
    refuses({"run", huge, "--out", path("out.json")});
    if (history_is_built()) refuses({"history", "show", "--db", huge});
  }
}

}  // namespace
}  // namespace moegauge
