// What machines and people do to files and folders: each ends in one line and an exit code of the
// contract, and nothing that was reported done is lost. docs/gating.md lists where each is tested.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <random>

#include "harness/commands/command_line_testing.h"
#include "harness/history/store.h"
#include "harness/history/utc.h"
#include "harness/result/shards.h"
#include "reference/base/text_file.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::AnyOf;
using testing::Eq;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::int64_t a_day = 86'400, first_night = 1'790'000'000;

class Hostile : public CommandLine {
 protected:
  void SetUp() override {
    if (!history_is_built()) GTEST_SKIP() << "this build has no SQLite";
  }
  // Measured at `time`; of a commit of `committed`, where there is one.
  std::string night(const std::string& name, std::int64_t time,
                    std::optional<std::int64_t> committed = {}, double factor = 1) {
    Result result = model_result_;
    result.machine = {{"date", utc_text(time).substr(0, 19) + "+00:00"}};
    result.context = {{"suite", "quick"}};
    if (committed) {
      result.context.emplace_back("commit", "abc");
      result.context.emplace_back("commit_time", utc_text(*committed));
    }
    const double off = 1 + 0.002 * static_cast<double>((time / a_day) % 3);
    for (CaseRecord& record : result.cases) scale_latency(record, factor * off);
    write(name, result);
    return path(name);
  }
  std::string db() const { return path("h.db"); }
  int add(const std::string& file) { return run({"history", "add", file, "--db", db()}); }
  int gate_and_add(const std::string& file) {
    return run({"gate", file, "--history", db(), "--add"});
  }
  void refuses(const std::vector<std::string>& words, const std::string& sentence) {
    EXPECT_EQ(run(words), 2) << testing::PrintToString(words) << out_;
    EXPECT_THAT(err_, AllOf(StartsWith("moegauge: "), HasSubstr(sentence)));
    EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 1) << err_;
  }
};

// Runs `body` in a process that owns nothing and may write nowhere but where all may.
template <typename Body>
void as_nobody(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::getuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(77);
    body();
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "cannot give up being root";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "see above";
}

TEST_F(Hostile, AReadOnlyFolderIsReadAndNotWritten) {
  for (int n = 0; n < 4; ++n) night("night" + std::to_string(n), first_night + n * a_day);
  for (int n = 0; n < 3; ++n) add(path("night" + std::to_string(n)));
  fs::permissions(folder_, fs::perms(0555));
  as_nobody([&] {
    const std::string now = path("night3");
    EXPECT_EQ(run({"gate", now, "--history", db()}), 0) << err_;
    EXPECT_EQ(run({"history", "trend", "*", "--db", db()}), 0) << err_;
    refuses({"gate", now, "--history", db(), "--add"}, db());
    refuses({"history", "add", now, "--db", db()}, db());
    refuses({"history", "add", now, "--db", path("new.db")}, path("new.db"));
    refuses({"gate", now, "--history", db(), "--junit", path("new.xml")}, "nothing can be written");
    refuses({"merge", now, "--out", path("whole.json")}, "nothing can be written");
  });
  fs::permissions(folder_, fs::perms(0755));
  EXPECT_EQ(run({"history", "show", "--db", db()}), 0);
  EXPECT_THAT(out_, HasSubstr("3 runs"));
}

TEST_F(Hostile, AFullDiskLeavesHistoryAndReportsAsTheyWere) {
  for (int n = 0; n < 8; ++n) add(night("night" + std::to_string(n), first_night + n * a_day));
  const std::string slow = night("slow", first_night + 9 * a_day, {}, 1.3);
  const std::string before = read_text_file(db());
  write_text("report.xml", "the old report");
  rlimit old = {};
  ::getrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, SIG_IGN);
  const auto with_room_for = [&](rlim_t bytes, const std::vector<std::string>& words) {
    const rlimit limited = {bytes, old.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limited);
    const int code = run(words);
    ::setrlimit(RLIMIT_FSIZE, &old);
    return code;
  };
  EXPECT_EQ(with_room_for(100, {"gate", slow, "--history", db(), "--junit", path("report.xml")}),
            2);
  EXPECT_THAT(err_, HasSubstr("cannot write"));
  EXPECT_EQ(read_text_file(path("report.xml")), "the old report");
  EXPECT_EQ(with_room_for(4096, {"gate", slow, "--history", db(), "--add"}), 2);
  EXPECT_THAT(err_, HasSubstr("the history is as it was"));
  EXPECT_EQ(with_room_for(4096, {"gate", path("night7"), "--history", db(), "--accept", "*",
                                 "--reason", "on purpose"}),
            2);
  EXPECT_EQ(read_text_file(db()), before);
  EXPECT_EQ(gate_and_add(slow), 1);
  EXPECT_THAT(out_, HasSubstr("3 cases are held back"));
}

// The commit's time decides; where there is none, the clock's, and one that is wrong is said.
TEST_F(Hostile, AClockThatWasSetBackPutsNoRunInAnothersPlace) {
  for (int n = 0; n < 12; ++n) {
    // Night 8 was measured with the clock of a year before.
    const std::int64_t measured = first_night + n * a_day - (n == 8 ? 365 * a_day : 0);
    EXPECT_EQ(add(night("night" + std::to_string(n), measured, first_night + n * a_day)), 0);
  }
  EXPECT_EQ(run({"history", "trend", model_result_.cases[0].id(), "--db", db(), "--json"}), 0);
  const auto trend = nlohmann::json::parse(out_);
  for (std::size_t n = 0; n < 12; ++n) EXPECT_EQ(trend[0]["points"][n]["run"], n + 1);
  const std::string now = night("now", first_night - 400 * a_day, first_night + 12 * a_day);
  EXPECT_EQ(run({"gate", now, "--history", db()}), 0) << out_;
  EXPECT_THAT(out_, HasSubstr("PASS: 3 cases"));
}

TEST_F(Hostile, AClockThatIsAheadIsSaid) {
  EXPECT_EQ(add(night("ahead", std::time(nullptr) + 30 * a_day)), 0);
  EXPECT_THAT(err_, AllOf(StartsWith("moegauge: warning: "), HasSubstr("is yet to come"),
                          HasSubstr("set the clock")));
  EXPECT_EQ(add(night("right", std::time(nullptr) - a_day)), 0);
  EXPECT_EQ(err_, "");
}

// A flipped bit of a digit is another number, which nobody can see; what cannot be is refused, and
// nothing crashes or passes for a whole file that is none.
TEST_F(Hostile, ABitThatTurnedOverEndsInAVerdictOrOneLine) {
  const std::string good = read_text_file(path("r.json"));
  write_text("base.json", good);
  std::mt19937_64 random(6);
  std::size_t refused = 0;
  for (int flip = 0; flip < 400; ++flip) {
    std::string text = good;
    text[random() % text.size()] ^= static_cast<char>(1 << random() % 8);
    write_text("flipped.json", text);
    for (const bool as_baseline : {false, true}) {
      const int code =
          as_baseline ? gate("base.json", "flipped.json") : gate("flipped.json", "base.json");
      EXPECT_THAT(code, AnyOf(Eq(0), Eq(1), Eq(2), Eq(4))) << flip;
      if (code != 2) continue;
      ++refused;
      EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 1) << err_;
    }
  }
  EXPECT_GT(refused, 100u);
}

TEST_F(Hostile, FilesOfVersionsToComeAreRefusedByVersion) {
  const auto of_version_2 = [&](const std::string& name, const std::string& kind) {
    return write_text(name, "{\"schema\": \"moegauge." + kind + "/2\"}");
  };
  const std::string result = path("r.json");
  refuses({"gate", of_version_2("now", "result"), "--baseline", result}, "version 2");
  refuses({"gate", result, "--baseline", of_version_2("then", "result")}, "version 2");
  refuses({"history", "add", of_version_2("add", "result"), "--db", db()}, "version 2");
  refuses({"gate", result, "--baseline", result, "--policy", of_version_2("p.json", "policy")},
          "moegauge.policy/1");
  refuses({"gate", result, "--baseline", result, "--calibration", of_version_2("c", "calibration")},
          "moegauge.calibration/1");
  refuses({"run", of_version_2("s.json", "suite"), "--out", path("o")}, "moegauge.suite/2");
}

// A team's mistakes, which must not look like a verdict.
TEST_F(Hostile, AnotherDevicesHistoryAndAnotherSuiteAreNoVerdict) {
  for (int n = 0; n < 5; ++n) add(night("night" + std::to_string(n), first_night + n * a_day));
  Result elsewhere = model_result_;
  for (CaseRecord& record : elsewhere.cases) record.device = "other card";
  elsewhere.machine = {{"date", "2026-11-30T00:00:00+00:00"}};
  write("elsewhere.json", elsewhere);
  EXPECT_EQ(run({"gate", path("elsewhere.json"), "--history", db()}), 4);
  EXPECT_THAT(out_, HasSubstr("the history has no run of it on other card"));
  // The same card under another driver is another device key.
  Result driver = model_result_;
  driver.machine = elsewhere.machine;
  driver.context = {{"device.fake device", "driver 999"}};
  write("driver.json", driver);
  EXPECT_EQ(run({"gate", path("driver.json"), "--history", db()}), 4);
  EXPECT_THAT(out_, HasSubstr("on fake device, driver 999"));
}

TEST_F(Hostile, HalfOfTheCasesIsNoPass) {
  for (int n = 0; n < 5; ++n) add(night("night" + std::to_string(n), first_night + n * a_day));
  Result half = model_result_;
  half.machine = {{"date", "2026-11-30T00:00:00+00:00"}};
  half.context = {{"suite", "quick"}};
  half.cases.resize(1);
  write("half.json", half);
  EXPECT_EQ(run({"gate", path("half.json"), "--history", db()}), 4);
  EXPECT_THAT(out_, HasSubstr("NO VERDICT: 2 of 3 cases"));
  EXPECT_EQ(gate("half.json", "r.json"), 4);
}

TEST_F(Hostile, AddingWhatWasJudgedInPartIsRefused) {
  refuses({"gate", path("r.json"), "--history", db(), "--add", "--filter", "*M=1"},
          "--filter leaves cases unjudged");
  const std::string text = read_text_file(path("r.json"));
  const std::string cut = write_text("cut.json", text.substr(0, text.size() - 300));
  EXPECT_EQ(gate_and_add(cut), 2);
  EXPECT_THAT(err_, HasSubstr("a part of a run is none"));
  EXPECT_FALSE(fs::exists(db()));
  EXPECT_EQ(run({"gate", path("r.json"), "--baseline", path("r.json"), "--add"}), 2);
}

}  // namespace
}  // namespace moegauge
