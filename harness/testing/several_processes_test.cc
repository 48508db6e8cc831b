// What is measured in several processes, as a user meets it: `doctor --calibrate` and `compare
// --exec-a --exec-b`. The scripted backend `noisy` takes 100 us times e^0, e^0.02, e^-0.02, ...
// from process to process (harness/testing/faulty_main.cc).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "harness/judge/calibration.h"
#include "harness/result/result_io.h"
#include "harness/testing/command.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class SeveralProcesses : public ::testing::Test {
 protected:
  SeveralProcesses() { ::setenv("MOEGAUGE_TEST_LOADS", path("loads").c_str(), 1); }
  ~SeveralProcesses() override { ::unsetenv("MOEGAUGE_TEST_LOADS"); }

  std::string path(const std::string& name) const { return folder_.path() / name; }
  Finished run(const std::vector<std::string>& arguments) {
    return run_command(MOEGAUGE_WITH_FAULTS, arguments, folder_.path());
  }
  std::vector<std::string> calibration_of(const std::string& fields,
                                          const std::vector<std::string>& options) {
    std::vector<std::string> words = {"doctor",       "--calibrate", folder_.suite(fields),
                                      "--spacing",    "0.01s",       "--out",
                                      path("c.json"), "--processes", "3"};
    words.insert(words.end(), options.begin(), options.end());
    return words;
  }
  Finished calibrate(const std::string& fields, const std::vector<std::string>& options = {}) {
    return run(calibration_of(fields, options));
  }
  // A folder whose moegauge takes `factor` times as long as the other's.
  std::string build(const std::string& name, const std::string& factor,
                    const std::string& before = "") {
    fs::create_directories(folder_.path() / name / "bin");
    const std::string file = folder_.write(
        name + "/bin/moegauge", "#!/bin/sh\nexport MOEGAUGE_TEST_FACTOR=" + factor +
                                    "\nexport MOEGAUGE_TEST_LOADS=" + path(name + ".loads") + "\n" +
                                    before + "\nexec " + MOEGAUGE_WITH_FAULTS + " \"$@\"\n");
    fs::permissions(file, fs::perms::owner_all);
    fs::remove(path(name + ".loads"));
    return path(name);
  }
  Finished compare(const std::string& a, const std::string& b,
                   const std::vector<std::string>& options = {},
                   const std::string& fields = R"("backend": "noisy")") {
    std::vector<std::string> words = {"compare",  "--exec-a", a,
                                      "--exec-b", b,          folder_.suite(fields)};
    words.insert(words.end(), options.begin(), options.end());
    return run(words);
  }

  TestFolder folder_;
};

void expect_one_line(const Finished& finished, int code, const std::string& part) {
  EXPECT_EQ(finished.code, code) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr(part));
  EXPECT_EQ(finished.out, "");
  const auto ours = finished.err.find("moegauge: ");
  ASSERT_NE(ours, std::string::npos) << finished.err;
  EXPECT_EQ(std::count(finished.err.begin() + static_cast<std::ptrdiff_t>(ours), finished.err.end(),
                       '\n'),
            1)
      << finished.err;
}

class Calibrate : public SeveralProcesses {};

// ln medians 0, 0.02 and -0.02 about each other: variance (0 + 4e-4 + 4e-4) / 2.
TEST_F(Calibrate, WritesTheSpreadBetweenProcessesThatGateReads) {
  const Finished finished = calibrate(R"("backend": "noisy", "tokens": [1, 2])");
  EXPECT_EQ(finished.code, 0) << finished.err;
  const Calibration calibration = load_calibration(path("c.json"));
  const auto& cases = calibration.at("Scripted/none/1");
  EXPECT_EQ(cases.size(), 2u);
  for (const auto& [id, one] : cases) {
    EXPECT_NEAR(one.between, 0.02, 1e-4) << id;
    EXPECT_EQ(one.processes, 3u);
  }
  EXPECT_THAT(finished.out, HasSubstr("2.00%"));
  EXPECT_THAT(finished.err, HasSubstr("[3/3] 03"));
  EXPECT_FALSE(fs::exists(path("c.json.processes"))) << "all is measured";

  const std::string suite = path("suite.json");
  for (const char* name : {"base.json", "now.json"})
    ASSERT_EQ(run({"run", suite, "--out", path(name)}).code, 0);
  const Finished gate = run({"gate", path("now.json"), "--baseline", path("base.json"),
                             "--calibration", path("c.json"), "--explain", "*/M=1"});
  EXPECT_THAT(gate.out, HasSubstr("calibration of 3 processes"));
}

TEST_F(Calibrate, KeepsWhatAnotherSuiteHadCalibrated) {
  ASSERT_EQ(calibrate(R"("backend": "noisy")").code, 0);
  ASSERT_EQ(calibrate(R"("backend": "noisy", "tokens": [1, 4])", {"--filter", "*/M=4"}).code, 0);
  EXPECT_EQ(load_calibration(path("c.json")).at("Scripted/none/1").size(), 2u);
}

TEST_F(Calibrate, GoesOnWithTheProcessesThatAreKept) {
  const std::vector<std::string> keep = {"--keep", path("kept")};
  ASSERT_EQ(calibrate(R"("backend": "noisy")", keep).code, 0);
  fs::remove(path("kept/02.json"));
  const Finished finished = calibrate(R"("backend": "noisy")", keep);
  EXPECT_EQ(finished.code, 0);
  EXPECT_THAT(finished.err, HasSubstr("[1/3] 01  is there"));
  EXPECT_THAT(finished.err, Not(HasSubstr("[2/3] 02  is there")));
  EXPECT_EQ(read_file(path("loads")), "4") << "three, then one again";
}

TEST_F(Calibrate, RefusesProcessesOfAnotherSuite) {
  const std::vector<std::string> keep = {"--keep", path("kept")};
  ASSERT_EQ(calibrate(R"("backend": "noisy")", keep).code, 0);
  fs::remove(path("c.json"));
  expect_one_line(calibrate(R"("backend": "noisy", "tokens": 8)", keep), 2,
                  "its results are of something else");
}

TEST_F(Calibrate, KeepsWhatIsDoneWhenInterrupted) {
  std::vector<std::string> words = calibration_of(R"("backend": "noisy")", {});
  *(std::ranges::find(words, "0.01s")) = "60s";
  Running running(MOEGAUGE_WITH_FAULTS, words, folder_.path());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (running.err().find("[1/3]") == std::string::npos &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  running.signal(SIGINT);
  const Finished stopped = running.wait();
  EXPECT_EQ(stopped.code, 130);
  EXPECT_THAT(stopped.err, HasSubstr("interrupted, 1 of 3 processes are done"));
  EXPECT_FALSE(fs::exists(path("c.json")));
  const Finished finished = calibrate(R"("backend": "noisy")");
  EXPECT_EQ(finished.code, 0);
  EXPECT_THAT(finished.err, HasSubstr("[1/3] 01  is there"));
}

TEST_F(Calibrate, StopsAfterOneProcessThatMeasuresNothing) {
  Finished finished = calibrate(R"("backend": "refuser")");
  EXPECT_EQ(finished.code, 4);
  EXPECT_THAT(finished.err, HasSubstr("left out: "));
  EXPECT_THAT(finished.err, HasSubstr("no case was ok in two processes, so nothing was written"));
  EXPECT_THAT(finished.err, Not(HasSubstr("[2/3]")));
  EXPECT_EQ(calibrate(R"("backend": "zeros")").code, 3);
  EXPECT_FALSE(fs::exists(path("c.json")));
}

TEST_F(Calibrate, RefusesWhatItCannotMean) {
  const std::string fields = R"("backend": "noisy")";
  expect_one_line(calibrate(fields, {"--processes", "1"}), 2, "--processes");
  expect_one_line(calibrate(fields, {"--spacing", "soon"}), 2, "--spacing");
  expect_one_line(calibrate(fields, {"--backend", "nois"}), 2, "noisy");
  const std::string suite = folder_.suite(fields);
  expect_one_line(run({"doctor", "--calibrate", suite, "--out", suite}), 2, "it is the suite");
  expect_one_line(calibrate(fields, {"--keep", folder_.path()}), 2, "files that are not of this");
  expect_one_line(calibrate(fields, {"--measure"}), 2, "--measure");
  expect_one_line(calibrate(fields, {"--filter", "nothing"}), 4, "no case of");
  expect_one_line(run({"doctor", "--processes", "3"}), 2, "--calibrate");
  folder_.write("c.json", "{}");
  expect_one_line(calibrate(fields), 2, "c.json");
  EXPECT_FALSE(fs::exists(path("loads"))) << "nothing was measured";
}

class CompareBuilds : public SeveralProcesses {};

// The k-th process of either build is off by the same, so that each pair's ratio is the factor.
TEST_F(CompareBuilds, FindsTheSlowerOneByItsExactFactorAndFails) {
  const std::string a = build("a", "1"), b = build("b", "1.04");
  const Finished finished = compare(a, b, {"--json", "--pairs", "10", "--tokens", "1,2"});
  EXPECT_EQ(finished.code, 1) << finished.err;
  const auto report = nlohmann::json::parse(finished.out);
  ASSERT_EQ(report.at("cases").size(), 2u);
  for (const auto& one : report.at("cases")) {
    EXPECT_EQ(one.at("latency").at("outcome"), "slower");
    EXPECT_NEAR(one.at("latency").at("ratio"), 1.04, 1e-4);
    EXPECT_EQ(one.at("latency").at("result_processes"), 10);
  }
  EXPECT_EQ(read_file(path("a.loads")), read_file(path("b.loads")));
}

TEST_F(CompareBuilds, PassesAFasterAndTheSameOne) {
  const std::string a = build("a", "1");
  Finished finished = compare(a, build("b", "0.9"), {"--pairs", "10", "--markdown", path("r.md")});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("faster"));
  EXPECT_THAT(finished.out, HasSubstr("A = " + a + "\nB = " + path("b") + "\n"));
  EXPECT_THAT(read_file(path("r.md")), HasSubstr("0.900x"));
  // The spread of 2% cancels in each pair: 2 are enough here, whose interval is [1, 1].
  finished = compare(build("a", "1"), build("b", "1"), {"--pairs", "2"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("same"));
}

// 0, 2, -2% against 2, -2, 0: pairs of +2, -4 and +2%, whose mean is 0 and whose interval is wide.
TEST_F(CompareBuilds, CannotTellFromAFewPairsThatDisagree) {
  const std::string a = build("a", "1"), b = build("b", "1");
  folder_.write("b.loads", "1");
  const Finished finished = compare(a, b, {"--pairs", "3"});
  EXPECT_EQ(finished.code, 4) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("inconclusive"));
  EXPECT_THAT(finished.out, HasSubstr("pairs or more (--pairs)"));
}

TEST_F(CompareBuilds, MeasuresABBA) {
  const Finished finished = compare(build("a", "1"), build("b", "1"), {"--pairs", "3"});
  std::string order;
  for (std::size_t at = 0; (at = finished.err.find("/6] ", at)) != std::string::npos; ++at)
    order += finished.err.substr(at + 4, 4) + " ";
  EXPECT_EQ(order, "01-a 01-b 02-b 02-a 03-a 03-b ");
}

TEST_F(CompareBuilds, GoesOnWithWhatIsKeptAlsoToMorePairs) {
  const std::string a = build("a", "1"), b = build("b", "1");
  const std::string kept = path("kept");
  ASSERT_EQ(compare(a, b, {"--pairs", "2", "--keep", kept}).code, 0);
  const Finished finished = compare(a, b, {"--pairs", "3", "--keep", kept});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("[4/6] 02-a  is there"));
  EXPECT_TRUE(fs::exists(path("kept/03-b.log")));
  expect_one_line(compare(b, a, {"--keep", kept}), 2, "its results are of something else");
}

TEST_F(CompareBuilds, FailsAfterAPairWhereTheNewBuildNoLongerRuns) {
  const std::string a = build("a", "1"), b = build("b", "1", "export MOEGAUGE_TEST_CRASHES=1");
  const Finished finished = compare(a, b);
  EXPECT_EQ(finished.code, 1) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("ok in the baseline, now crashed"));
  EXPECT_THAT(finished.err, HasSubstr("[2/28] 01-b")) << "14 pairs unless asked otherwise";
  EXPECT_THAT(finished.err, Not(HasSubstr("02-")));
}

TEST_F(CompareBuilds, RefusesBuildsThatMakeOtherCasesOfTheSuite) {
  const std::string a = build("a", "1");
  const std::string wrong = build("b", "1", "[ \"$1\" = run ] && set -- \"$@\" --backend zeros");
  // Other cases: the backend is part of their ids.
  expect_one_line(compare(a, wrong, {"--pairs", "2"}), 2, "the builds make other cases of it");
}

TEST_F(CompareBuilds, SaysInALineWhatIsWrongWithABuild) {
  const std::string a = build("a", "1");
  expect_one_line(compare(a, path("nowhere")), 2,
                  "--exec-b: " + path("nowhere") + " holds neither");
  expect_one_line(compare(a, build("dead", "1", "kill -SEGV $$")), 4, "build B");
  expect_one_line(compare(a, build("old", "1", "echo 'moegauge: unknown scheme' >&2; exit 2")), 2,
                  "(unknown scheme)");
  const std::string script = build("locked", "1") + "/bin/moegauge";
  fs::permissions(script, fs::perms::owner_read);
  if (::access(script.c_str(), X_OK) != 0)
    expect_one_line(compare(a, path("locked")), 2, "cannot be executed");
  expect_one_line(run({"compare", "--exec-a", a, path("suite.json")}), 2, "--exec-b");
  expect_one_line(run({"compare", "x.json"}), 2, "B is missing");
  expect_one_line(run({"compare", "--exec-a", a, "--exec-b", a, "no-such-suite"}), 2,
                  "there is no such suite");
  expect_one_line(run({"compare", "x.json", "y.json", "--pairs", "3"}), 2, "--exec-a");
  expect_one_line(compare(a, a, {"--pairs", "1"}), 2, "--pairs");
}

TEST_F(CompareBuilds, StopsAfterAPairOfWhichNothingCanBeJudged) {
  const std::string a = build("a", "1");
  const Finished finished = compare(a, a, {}, R"("backend": "refuser")");
  EXPECT_EQ(finished.code, 4);
  EXPECT_THAT(finished.err, Not(HasSubstr("02-")));
}

}  // namespace
}  // namespace moegauge
