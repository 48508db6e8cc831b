// What becomes of a run whose kernels misbehave. Each test runs the real command line, with
// backends that fail in one way each (harness/testing/faulty_main.cc), and reads the result file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>

#include "harness/result/result_io.h"
#include "harness/testing/command.h"

namespace moegauge {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

struct Outcome {
  Finished finished;
  Result result;
  const CaseRecord& of(const std::string& backend) const {
    for (const CaseRecord& record : result.cases) {
      if (record.coordinates.backend == backend) return record;
    }
    throw std::out_of_range("no case of " + backend);
  }
  std::string reason(const std::string& backend) const {
    const auto* unmeasured = std::get_if<Unmeasured>(&of(backend).outcome);
    return unmeasured == nullptr ? "" : unmeasured->reason;
  }
};

class WorkerFaults : public ::testing::Test {
 protected:
  // Runs a suite of one point whose rivals are `backends`.
  Outcome run(const std::string& backends, std::vector<std::string> options = {}) {
    std::vector<std::string> arguments = {
        "run", folder_.suite(R"("tokens": 2)"), "--out", out(), "--backend", backends};
    arguments.insert(arguments.end(), options.begin(), options.end());
    Outcome outcome{run_command(MOEGAUGE_WITH_FAULTS, arguments, folder_.path()), {}};
    if (std::filesystem::exists(out())) outcome.result = load_result(out()).result;
    return outcome;
  }
  std::string out() const { return folder_.path() / "result.json"; }

  TestFolder folder_;
};

TEST_F(WorkerFaults, AnHonestBackendIsOk) {
  const Outcome outcome = run("honest");
  EXPECT_EQ(outcome.finished.code, 0) << outcome.finished.err;
  ASSERT_EQ(outcome.of("honest").status(), Status::ok);
  EXPECT_NEAR(outcome.of("honest").measured()->latency.median, 100, 1e-6) << "as scripted";
}

// A crash costs the case in flight; the rivals before and after it are measured, together.
TEST_F(WorkerFaults, ACrashCostsOneCaseAndIsNamed) {
  const Outcome outcome = run("honest,segfault,slow");
  EXPECT_EQ(outcome.finished.code, 3);
  EXPECT_EQ(outcome.of("segfault").status(), Status::crashed);
  EXPECT_EQ(outcome.reason("segfault"), "killed by SIGSEGV while checking");
  EXPECT_EQ(outcome.of("honest").status(), Status::ok);
  EXPECT_EQ(outcome.of("slow").status(), Status::ok);
  EXPECT_EQ(outcome.result.comparisons.size(), 1u);
}

TEST_F(WorkerFaults, ACrashDuringTimingIsOfTheRowThatRan) {
  const Outcome outcome = run("honest,segfault_late");
  EXPECT_EQ(outcome.reason("segfault_late"), "killed by SIGSEGV while timing");
  EXPECT_EQ(outcome.of("honest").status(), Status::ok);
}

TEST_F(WorkerFaults, EveryWayToEndIsTold) {
  const Outcome outcome = run("abort,exit,segfault_load,throws,fault,memory,device_memory,honest");
  EXPECT_EQ(outcome.reason("abort"), "killed by SIGABRT while checking");
  EXPECT_EQ(outcome.reason("exit"), "left with exit code 7 while checking");
  EXPECT_EQ(outcome.reason("segfault_load"), "killed by SIGSEGV while loading weights");
  EXPECT_EQ(outcome.of("throws").status(), Status::error);
  EXPECT_EQ(outcome.reason("throws"), "a kernel threw");
  EXPECT_EQ(outcome.of("fault").status(), Status::error);
  EXPECT_EQ(outcome.reason("fault"), "illegal memory access");
  EXPECT_EQ(outcome.of("memory").status(), Status::out_of_memory);
  EXPECT_EQ(outcome.of("device_memory").status(), Status::out_of_memory);
  EXPECT_EQ(outcome.reason("device_memory"), "0 of 8 GiB left");
  EXPECT_EQ(outcome.of("honest").status(), Status::ok);
}

// Where no kernel was at work none is to blame, and the run has no verdict on the case.
TEST_F(WorkerFaults, ADeathOfTheOracleIsNotTheKernels) {
  const Outcome outcome = run("oracle_segfault,honest");
  EXPECT_EQ(outcome.of("oracle_segfault").status(), Status::infrastructure);
  EXPECT_EQ(outcome.reason("oracle_segfault"),
            "the harness's own fault: killed by SIGSEGV while computing the truth");
  EXPECT_EQ(outcome.of("honest").status(), Status::ok);
  EXPECT_EQ(outcome.finished.code, 4);
}

// Weights are loaded once per worker: a load that kills its process would cost one process, and for
// a hang one time limit, per case.
TEST_F(WorkerFaults, ALoadThatKillsTwoWorkersIsNotTriedAThirdTime) {
  const auto suite = folder_.suite(R"("tokens": [1, 2, 4, 8])");
  run_command(MOEGAUGE_WITH_FAULTS, {"run", suite, "--out", out(), "--backend", "segfault_load"},
              folder_.path());
  const Result result = load_result(out()).result;
  const auto reason = [&](std::size_t i) {
    return std::get<Unmeasured>(result.cases[i].outcome).reason;
  };
  EXPECT_EQ(reason(1), "killed by SIGSEGV while loading weights");
  EXPECT_EQ(reason(3), "killed by SIGSEGV while loading weights, as twice before; not tried again");
}

TEST_F(WorkerFaults, AHangIsStoppedAtTheTimeLimit) {
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = run("hang,stubborn,honest", {"--timeout", "2"});
  EXPECT_EQ(outcome.of("hang").status(), Status::timeout);
  EXPECT_EQ(outcome.reason("hang"), "not done after 2 s, stopped while checking with SIGTERM");
  EXPECT_THAT(outcome.reason("stubborn"), HasSubstr("with SIGKILL, since SIGTERM was not heeded"));
  EXPECT_EQ(outcome.of("honest").status(), Status::ok);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST_F(WorkerFaults, AProcessThatAKernelLeavesBehindDoesNotHideItsEnd) {
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = run("leaves_a_process,honest");
  EXPECT_EQ(outcome.reason("leaves_a_process"), "left with exit code 7 while checking");
  EXPECT_EQ(outcome.of("honest").status(), Status::ok);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(25))
      << "which that process does not outlive";
}

TEST_F(WorkerFaults, WhatAKernelPrintsHarmsNothing) {
  const Outcome outcome = run("prints");
  EXPECT_EQ(outcome.of("prints").status(), Status::ok);
  EXPECT_THAT(outcome.finished.out, ::testing::Not(HasSubstr("point_done")))
      << "the table is clean";
}

TEST_F(WorkerFaults, AKernelThatWritesIntoTheHarnessesPipeIsNamed) {
  const Outcome outcome = run("scribbles,honest");
  EXPECT_EQ(outcome.of("scribbles").status(), Status::crashed);
  EXPECT_THAT(outcome.reason("scribbles"), HasSubstr("wrote into the harness's own pipe"));
  EXPECT_EQ(outcome.of("honest").status(), Status::ok);
}

TEST_F(WorkerFaults, AWrongAnswerHasNoLatency) {
  const Outcome outcome = run("zeros,wavers,late_nan");
  EXPECT_EQ(outcome.finished.code, 3);
  for (const char* backend : {"zeros", "wavers", "late_nan"}) {
    EXPECT_EQ(outcome.of(backend).status(), Status::inaccurate) << backend;
    EXPECT_TRUE(std::get<Unmeasured>(outcome.of(backend).outcome).check) << backend;
  }
  // All-zero output is at distance 1 from any truth.
  EXPECT_THAT(outcome.reason("zeros"),
              HasSubstr("error.implementation.relative_l2 1 exceeds 0.003"));
  EXPECT_THAT(outcome.reason("wavers"), ContainsRegex("not deterministic.*differ in 1 of 512"));
  EXPECT_THAT(outcome.reason("late_nan"), HasSubstr("y[1, 255]"));
}

TEST_F(WorkerFaults, RefusalsAreNoFailures) {
  const Outcome outcome = run("refuser,choosy,honest");
  EXPECT_EQ(outcome.finished.code, 0);
  EXPECT_EQ(outcome.of("refuser").status(), Status::unsupported);
  EXPECT_EQ(outcome.of("choosy").status(), Status::refused_config);
}

TEST_F(WorkerFaults, NothingOkIsNoVerdict) { EXPECT_EQ(run("refuser").finished.code, 4); }

TEST_F(WorkerFaults, NothingOkLeavesAnEarlierResultAlone) {
  EXPECT_EQ(run("zeros").finished.code, 3);
  EXPECT_EQ(load_result(out()).result.cases.size(), 1u) << "there is none to spare";
  run("honest");
  const std::string earlier = read_file(out());
  EXPECT_EQ(run("zeros").finished.code, 3);
  EXPECT_EQ(read_file(out()), earlier);
  EXPECT_EQ(load_result(out() + ".partial").result.cases[0].status(), Status::inaccurate);
}

// A dump that cannot be written is the disk's fault: a gate must not fail a kernel for it.
TEST_F(WorkerFaults, ADumpThatCannotBeWrittenIsNoFaultOfTheKernel) {
  const std::filesystem::path dump = folder_.path() / "dump";
  run("honest", {"--dump", dump.string()});
  const std::filesystem::path file = std::filesystem::directory_iterator(dump)->path();
  std::filesystem::remove(file);
  std::filesystem::create_directories(file / "in the way");
  std::filesystem::remove(out());
  const Outcome outcome = run("honest", {"--dump", dump.string()});
  EXPECT_EQ(outcome.of("honest").status(), Status::infrastructure) << outcome.finished.err;
  EXPECT_THAT(outcome.reason("honest"),
              HasSubstr("the harness's own fault while writing the dump"));
  EXPECT_EQ(outcome.finished.code, 4);
}

// Neither a pass nor a regression: what the machine lost has no verdict.
TEST_F(WorkerFaults, ACaseLostToTheMachineIsNoVerdictEvenBesideOkOnes) {
  ::setenv("MOEGAUGE_TEST_FAILURES", folder_.write("failures", "1").c_str(), 1);
  const Outcome outcome = run("flaky,honest");
  EXPECT_EQ(outcome.of("flaky").status(), Status::infrastructure);
  EXPECT_EQ(outcome.of("honest").status(), Status::ok);
  EXPECT_EQ(outcome.finished.code, 4);
}

TEST_F(WorkerFaults, SetUpFaultsAreRetriedAndEveryAttemptIsKept) {
  ::setenv("MOEGAUGE_TEST_FAILURES", folder_.write("failures", "2").c_str(), 1);
  const Outcome outcome = run("flaky", {"--retries", "3"});
  EXPECT_EQ(outcome.of("flaky").status(), Status::ok);
  EXPECT_THAT(outcome.of("flaky").attempts,
              ::testing::ElementsAre("infrastructure: the driver is still starting",
                                     "infrastructure: the driver is still starting"));
}

TEST_F(WorkerFaults, FaultsAfterTheFirstLaunchAreNotRetried) {
  const Outcome outcome = run("segfault,fault", {"--retries", "3"});
  EXPECT_TRUE(outcome.of("segfault").attempts.empty());
  EXPECT_TRUE(outcome.of("fault").attempts.empty());
}

TEST_F(WorkerFaults, TheBudgetSkipsTheRestInTheSuitesOrder) {
  const auto suite = folder_.suite(R"("tokens": [1, 2, 4, 8, 16])");
  const Finished finished = run_command(
      MOEGAUGE_WITH_FAULTS, {"run", suite, "--out", out(), "--backend", "slow", "--budget", "1s"},
      folder_.path());
  EXPECT_EQ(finished.code, 0) << finished.err;
  const Result result = load_result(out()).result;
  EXPECT_EQ(result.cases.front().status(), Status::ok);
  EXPECT_EQ(result.cases.back().status(), Status::skipped);
  EXPECT_EQ(std::get<Unmeasured>(result.cases.back().outcome).reason, "budget");
}

TEST_F(WorkerFaults, UnderABudgetEverySchemeHasItsFirstPointBeforeAnyHasAll) {
  const auto suite = folder_.write("two.json", R"({"schema": "moegauge.suite/1", "name": "two",
    "cases": [{"model": "config.json", "scheme": ["bf16", "fp16"],
               "tokens": [1, 2, 4, 8, 16, 32, 64]}]})");
  run_command(MOEGAUGE_WITH_FAULTS,
              {"run", suite, "--out", out(), "--backend", "slow", "--budget", "3s"},
              folder_.path());
  const Result result = load_result(out()).result;
  const auto first_of = [&](const std::string& scheme) -> const CaseRecord& {
    return *std::ranges::find(result.cases, scheme,
                              [](const CaseRecord& c) { return c.coordinates.scheme; });
  };
  EXPECT_EQ(first_of("bf16").status(), Status::ok);
  EXPECT_EQ(first_of("fp16").status(), Status::ok);
  EXPECT_EQ(result.cases.back().status(), Status::skipped);
}

// Ctrl-Z and fg, a frozen container, a machine that slept: no time of a case passes meanwhile.
TEST_F(WorkerFaults, AParentThatWasStoppedForLongerThanTheLimitLosesNothing) {
  const auto suite = folder_.suite(R"("tokens": [1, 2, 4])");
  Running running(MOEGAUGE_WITH_FAULTS,
                  {"run", suite, "--out", out(), "--backend", "slow", "--timeout", "4s"},
                  folder_.path());
  while (running.err().find("[1/3]") == std::string::npos) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  running.signal(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(6));
  running.signal(SIGCONT);
  EXPECT_EQ(running.wait().code, 0);
  for (const CaseRecord& record : load_result(out()).result.cases) {
    EXPECT_EQ(record.status(), Status::ok);
  }
}

// kill -9 of the parent: its worker goes with it, and a resumed run repeats nothing that was
// finished.
TEST_F(WorkerFaults, AKilledParentLosesAtMostTheCaseInFlight) {
  const auto suite = folder_.suite(R"("tokens": [1, 2, 4, 8, 16, 32])");
  const std::vector<std::string> arguments = {"run", suite, "--out", out(), "--backend", "slow"};
  Running running(MOEGAUGE_WITH_FAULTS, arguments, folder_.path());
  while (running.err().find("[2/6]") == std::string::npos) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  running.signal(SIGKILL);
  EXPECT_EQ(running.wait().code, 128 + SIGKILL);
  EXPECT_FALSE(std::filesystem::exists(out()));

  const std::string journal = read_file(out() + ".journal");
  auto resumed = arguments;
  resumed.push_back("--resume");
  const Finished finished = run_command(MOEGAUGE_WITH_FAULTS, resumed, folder_.path());
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(read_file(out() + ".journal"), ::testing::StartsWith(journal))
      << "what was finished stands as it stood";
  const Result result = load_result(out()).result;
  ASSERT_EQ(result.cases.size(), 6u);
  for (const CaseRecord& record : result.cases) EXPECT_EQ(record.status(), Status::ok);
}

// At whatever moment: each attempt is killed a little later than the one before, also while it
// loads, checks, times, and writes its journal, until one gets through.
TEST_F(WorkerFaults, ARunThatIsKilledAgainAndAgainKeepsWhatItFinished) {
  const auto suite = folder_.suite(R"("tokens": [1, 2, 4, 8, 16, 32])");
  const std::vector<std::string> arguments = {"run",       suite,  "--out",   out(),
                                              "--backend", "slow", "--resume"};
  std::string journal;
  int kills = 0;
  for (;; ++kills) {
    ASSERT_LT(kills, 100) << "no attempt gets through";
    Running running(MOEGAUGE_WITH_FAULTS, arguments, folder_.path());
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + 97 * kills));
    running.signal(SIGKILL);
    const Finished finished = running.wait();
    if (finished.code == 0) break;
    ASSERT_EQ(finished.code, 128 + SIGKILL) << finished.err;
    EXPECT_FALSE(std::filesystem::exists(out()));
    const std::string now =
        std::filesystem::exists(out() + ".journal") ? read_file(out() + ".journal") : "";
    const std::size_t whole = journal.rfind('\n') + 1;  // a line cut short is written anew
    EXPECT_EQ(now.substr(0, whole), journal.substr(0, whole));
    journal = now;
  }
  EXPECT_GT(kills, 3);
  const Result result = load_result(out()).result;
  ASSERT_EQ(result.cases.size(), 6u);
  for (const CaseRecord& record : result.cases) EXPECT_EQ(record.status(), Status::ok);
}

TEST_F(WorkerFaults, AnInterruptWritesWhatThereIsBesideAnEarlierResult) {
  const std::string earlier = "an earlier result";
  folder_.write("result.json", earlier);
  const auto suite = folder_.suite(R"("tokens": [1, 2, 4, 8, 16, 32])");
  Running running(MOEGAUGE_WITH_FAULTS, {"run", suite, "--out", out(), "--backend", "slow"},
                  folder_.path());
  while (running.err().find("[1/6]") == std::string::npos) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  running.signal(SIGINT);
  const Finished finished = running.wait();
  EXPECT_EQ(finished.code, 128 + SIGINT);
  EXPECT_THAT(finished.err, HasSubstr("interrupted, so the result is in " + out() + ".partial"));
  EXPECT_EQ(read_file(out()), earlier);
  const Result result = load_result(out() + ".partial").result;
  ASSERT_EQ(result.cases.size(), 6u);
  EXPECT_EQ(result.cases.front().status(), Status::ok);
  EXPECT_EQ(result.cases.back().status(), Status::skipped);
  EXPECT_EQ(std::get<Unmeasured>(result.cases.back().outcome).reason, "interrupted");
}

}  // namespace
}  // namespace moegauge
