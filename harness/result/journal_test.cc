#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <sstream>

#include "harness/result/record_testing.h"
#include "harness/result/result_io.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

const std::string header = "suite quick, seed 1";

class JournalFile : public testing::Test {
 protected:
  void SetUp() override {
    file_ = test_folder() / ("moegauge_" + std::to_string(::getpid()) + ".journal");
  }
  void TearDown() override {
    fs::remove(file_);
    fs::remove(file_.string() + ".old");
  }

  std::string contents() const {
    std::ostringstream text;
    text << std::ifstream(file_, std::ios::binary).rdbuf();
    return text.str();
  }
  void write(const std::string& text) const { std::ofstream(file_, std::ios::binary) << text; }
  std::vector<std::string> resume(const std::string& as = header) const {
    std::vector<CaseRecord> done;
    Journal::open(file_, as, true, done);
    std::vector<std::string> lines;
    for (const auto& record : done) lines.push_back(case_to_line(record));
    return lines;
  }
  std::string refusal(const std::string& as = header) const {
    try {
      resume(as);
    } catch (const InputError& error) {
      return std::string(error.what()).substr(file_.string().size());
    }
    return "accepted";
  }

  fs::path file_;
};

TEST_F(JournalFile, HoldsAHeaderAndALinePerCase) {
  std::vector<CaseRecord> done;
  auto journal = Journal::open(file_, header, false, done);
  journal.append(test_measured(1));
  journal.append(test_unmeasured(Status::crashed, "signal 11", 4));
  EXPECT_EQ(contents(), "{\"schema\":\"moegauge.journal/1\",\"header\":\"suite quick, seed 1\"}\n" +
                            case_to_line(test_measured(1)) + "\n" +
                            case_to_line(test_unmeasured(Status::crashed, "signal 11", 4)) + "\n");
}

TEST_F(JournalFile, CutAtAnyByteGivesBackItsWholeLinesAndGoesOn) {
  std::vector<CaseRecord> done;
  {
    auto journal = Journal::open(file_, header, false, done);
    for (const std::int64_t tokens : {1, 2, 3}) journal.append(test_measured(tokens));
  }
  const std::string whole = contents();
  const std::string last = case_to_line(test_measured(4)) + "\n";
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    write(whole.substr(0, cut));
    const auto lines =
        std::count(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut), '\n');
    const std::size_t cases = lines == 0 ? 0 : static_cast<std::size_t>(lines - 1);
    {
      auto journal = Journal::open(file_, header, true, done);
      ASSERT_EQ(done.size(), cases) << cut;
      journal.append(test_measured(4));
    }
    // What follows stands right after the last whole line.
    const std::string kept = lines == 0 ? whole.substr(0, whole.find('\n') + 1)
                                        : whole.substr(0, whole.substr(0, cut).rfind('\n') + 1);
    ASSERT_EQ(contents(), kept + last) << cut;
  }
}

TEST_F(JournalFile, OfAnotherRunIsRefusedWithBothNames) {
  std::vector<CaseRecord> done;
  Journal::open(file_, header, false, done);
  EXPECT_EQ(refusal("suite nightly, seed 2"),
            ":1: the journal is of another run: \"suite quick, seed 1\"; this run is \"suite "
            "nightly, seed 2\"; run without "
            "--resume or give another --out");
  EXPECT_EQ(resume(), std::vector<std::string>{});  // and is still there
  write("something else\nentirely\n");
  EXPECT_EQ(refusal(), ":1:1:1: syntax error while parsing value - invalid literal");
  write("no line break");
  EXPECT_EQ(refusal(), ": no journal; a first line that names the run is expected");
}

TEST_F(JournalFile, DamagedInAWholeLineIsRefusedByLine) {
  std::vector<CaseRecord> done;
  {
    auto journal = Journal::open(file_, header, false, done);
    journal.append(test_measured(1));
  }
  write(contents() + "{\"id\": 1}\n");
  EXPECT_EQ(refusal().substr(0, 3), ":3:");
}

TEST_F(JournalFile, TakesTheLastRecordOfACaseWrittenTwice) {
  std::vector<CaseRecord> done;
  {
    auto journal = Journal::open(file_, header, false, done);
    journal.append(test_unmeasured(Status::infrastructure, "device lost", 1));
    journal.append(test_measured(2));
    journal.append(test_measured(1));
  }
  EXPECT_EQ(resume(), (std::vector<std::string>{case_to_line(test_measured(1)),
                                                case_to_line(test_measured(2))}));
}

TEST_F(JournalFile, StartedAnewSetsTheOldOneAside) {
  std::vector<CaseRecord> done;
  Journal::open(file_, header, false, done).append(test_measured(1));
  const std::string old = contents();
  done = {test_measured(9)};
  Journal::open(file_, "suite nightly, seed 2", false, done);
  EXPECT_TRUE(done.empty());
  std::ostringstream aside;
  aside << std::ifstream(file_.string() + ".old").rdbuf();
  EXPECT_EQ(aside.str(), old);
  EXPECT_EQ(contents(),
            "{\"schema\":\"moegauge.journal/1\",\"header\":\"suite nightly, seed 2\"}\n");
}

TEST_F(JournalFile, IsHeldByOneProcessAtATime) {
  std::vector<CaseRecord> done;
  auto journal = Journal::open(file_, header, false, done);
  const pid_t other = ::fork();
  if (other == 0)
    ::_exit(refusal() == ": another run is writing this journal; wait for it or give another --out"
                ? 0
                : 1);
  int status = -1;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(JournalFile, LosesNothingToAKill) {
  int ready[2] = {};
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t run = ::fork();
  if (run == 0) {
    std::vector<CaseRecord> done;
    auto journal = Journal::open(file_, header, false, done);
    for (std::int64_t tokens = 1; tokens <= max_tokens; ++tokens) {
      journal.append(test_measured(tokens));
      if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    }
  }
  char reported[64] = {};
  std::size_t finished = 0;
  while (finished < 20)
    finished += static_cast<std::size_t>(::read(ready[0], reported, sizeof reported));
  ::kill(run, SIGKILL);
  int status = 0;
  ::waitpid(run, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  ::close(ready[0]);
  ::close(ready[1]);
  EXPECT_GE(resume().size(), finished);
}

TEST_F(JournalFile, OnAFullDiskSaysSoAndKeepsWholeLines) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    std::vector<CaseRecord> done;
    auto journal = Journal::open(file_, header, false, done);
    journal.append(test_measured(1));
    const auto limit = static_cast<rlim_t>(fs::file_size(file_) + 100);  // not enough for a line
    const rlimit limits = {limit, limit};
    ::setrlimit(RLIMIT_FSIZE, &limits);
    try {
      journal.append(test_measured(2));
      ::_exit(1);
    } catch (const InputError& error) {
      const std::string expected =
          file_.string() +
          ": cannot write the journal: File too large; give a writable place with room";
      ::_exit(error.what() == expected ? 0 : 2);
    }
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(contents().back(), '\n');
  EXPECT_EQ(resume(), (std::vector<std::string>{case_to_line(test_measured(1))}));
}

TEST_F(JournalFile, ThatCannotBeMadeIsRefused) {
  std::vector<CaseRecord> done;
  EXPECT_THROW(Journal::open("no/such/folder/r.journal", header, false, done), InputError);
}

}  // namespace
}  // namespace moegauge
