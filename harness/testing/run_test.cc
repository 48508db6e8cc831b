// `moegauge run` as a user meets it: exit codes, messages, files, the repro line. Scripted backends
// stand in for kernels (harness/testing/faulty_main.cc).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "harness/result/result_io.h"
#include "harness/testing/command.h"

namespace moegauge {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

class Run : public ::testing::Test {
 protected:
  Finished run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "run");
    return run_command(MOEGAUGE_WITH_FAULTS, arguments, folder_.path());
  }
  Finished run_suite(const std::string& fields, std::vector<std::string> options = {}) {
    std::vector<std::string> arguments = {folder_.suite(fields), "--out", out()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run(arguments);
  }
  std::string out() const { return folder_.path() / "result.json"; }

  TestFolder folder_;
};

TEST_F(Run, WritesATableAndAResult) {
  const Finished finished = run_suite(
      R"("tokens": [1, 2], "backend": "honest", "config": ["default", {"BLOCK_SIZE_M": 8}])");
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("of floor"));
  EXPECT_THAT(finished.err, HasSubstr("[4/4]"));
  EXPECT_THAT(finished.err, Not(HasSubstr("\r"))) << "plain lines where no terminal is";
  const Result result = load_result(out()).result;
  EXPECT_EQ(result.cases.size(), 4u);
  ASSERT_EQ(result.comparisons.size(), 2u);
  EXPECT_NEAR(result.comparisons[0].ratio, 1, 1e-9) << "both take the scripted 100 us";
}

TEST_F(Run, QuietSaysNothingOnStderr) {
  const Finished finished = run_suite(R"("backend": "honest")", {"--quiet"});
  EXPECT_EQ(finished.code, 0);
  // But that the machine was busy is said to whoever will read the latencies.
  EXPECT_THAT(finished.err,
              AnyOf(IsEmpty(), MatchesRegex("moegauge: warning: other processes kept [^\n]*\n")));
}

TEST_F(Run, RefusesWhatItCannotRead) {
  Finished finished = run_suite(R"("tokns": 1, "backend": "honest")");
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.err, StartsWith("moegauge: "));
  EXPECT_THAT(finished.err, HasSubstr("suite.json"));
  EXPECT_THAT(finished.err, HasSubstr("tokens"));
  EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished.err;

  finished = run({"no-such-suite"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.err, HasSubstr("there is no such suite"));
}

TEST_F(Run, RefusesOptionsThatMeanNothing) {
  for (const std::vector<std::string>& options : {std::vector<std::string>{"--backend", "honset"},
                                                  {"--device", "honest:3"},
                                                  {"--tokens", "many"},
                                                  {"--shard", "3/2"},
                                                  {"--budget", "soon"},
                                                  {"--timeout", "0"},
                                                  {"--retries", "-1"},
                                                  {"--profile", "x"},
                                                  {"--weights", "."},
                                                  {"--layer", "0"},
                                                  {"--iterate", "nothing"},
                                                  {"--no-such-option"}}) {
    const Finished finished = run_suite(R"("backend": "honest")", options);
    EXPECT_EQ(finished.code, 2) << options.front();
    EXPECT_THAT(finished.err, StartsWith("moegauge: ")) << options.front();
    EXPECT_FALSE(std::filesystem::exists(out())) << options.front();
  }
}

// Whatever it computes: `zeros` would be inaccurate, were it checked.
TEST_F(Run, AProfiledCaseIsLaunchedAndNotChecked) {
  run_suite(R"("backend": "honest")");
  const std::string honest = load_result(out()).result.cases.at(0).id();
  const auto profiled = [&](const std::string& backend) {
    std::string id = honest;
    id.replace(id.find("/honest/") + 1, 6, backend);
    return run({folder_.suite(R"("backend": ")" + backend + "\""), "--profile", id});
  };
  const Finished finished = profiled("zeros");
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, StartsWith("profiled fused_moe/"));
  EXPECT_THAT(finished.out, HasSubstr("on zeros: one marked launch after one to warm up"));
  EXPECT_EQ(finished.err, "");
  const Finished refused = profiled("refuser");
  EXPECT_EQ(refused.code, 4);
  EXPECT_THAT(refused.err, HasSubstr("unsupported: refuser: shape: nothing is served here"));
}

TEST_F(Run, AnEmptyFilterIsNoVerdict) {
  EXPECT_EQ(run_suite(R"("backend": "honest")", {"--filter", "*/M=77"}).code, 4);
}

TEST_F(Run, ATunedConfigWithoutAFileIsSkippedAndSaysWhatMakesIt) {
  const Finished finished = run_suite(R"("backend": "honest", "config": "tuned")");
  EXPECT_EQ(finished.code, 4);
  const Result result = load_result(out()).result;
  EXPECT_EQ(result.cases[0].status(), Status::skipped);
  EXPECT_THAT(
      std::get<Unmeasured>(result.cases[0].outcome).reason,
      testing::MatchesRegex("no tuned file E=8,N=128,device_name=Scripted.json; moegauge tune "
                            "--model .* --scheme bf16 --backend honest makes one"));
}

// What the gate tells a missing device from a backend that is here and refuses by.
TEST_F(Run, ACaseThatCannotRunSaysWhetherItsBackendIsHere) {
  EXPECT_EQ(run_suite(R"("backend": ["gone", "refuser"])").code, 4);
  const Result result = load_result(out()).result;
  const auto& gone = std::get<Unmeasured>(result.cases.at(0).outcome);
  EXPECT_EQ(gone.status, Status::unsupported);
  EXPECT_EQ(gone.absent_backends, std::vector<std::string>{"gone"});
  EXPECT_EQ(result.cases[0].device, "");
  const auto& refused = std::get<Unmeasured>(result.cases.at(1).outcome);
  EXPECT_THAT(refused.absent_backends, IsEmpty());
  EXPECT_EQ(result.cases[1].device, "Scripted/none/1");
  EXPECT_EQ(result.cases[1].backend, "refuser");
}

// A runner that is there for a device, and has none of it.
TEST_F(Run, ABackendThatTheCommandLineNamesAndThatIsNotHereIsTheMachinesFault) {
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--backend", "gone,honest"}, {"--device", "gone:0"}}) {
    const Finished finished = run_suite(R"("tokens": 2)", options);
    EXPECT_EQ(finished.code, 4) << finished.err;
    const Result result = load_result(out()).result;
    const auto& gone = std::get<Unmeasured>(result.cases.at(0).outcome);
    EXPECT_EQ(gone.status, Status::infrastructure);
    EXPECT_EQ(gone.reason,
              "asked for by --backend or --device, and not on this machine: gone: no driver");
    std::filesystem::remove(out());
  }
}

TEST_F(Run, AutoTakesTheFirstBackendThatDoesNotRefuse) {
  const Finished finished = run_suite(R"("backend": "auto")");
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(load_result(out()).result.cases[0].backend, "honest");
}

TEST_F(Run, AResultThatCannotBeWrittenIsALine) {
  const Finished finished =
      run({folder_.suite(R"("backend": "honest")"), "--out", "/proc/no/such"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.err, HasSubstr("/proc/no/such"));
}

// The line in the record, given to a shell, measures that case alone and writes no file.
TEST_F(Run, TwoOnOneOutputAreOneAndALine) {
  const std::string suite = folder_.suite(R"("tokens": [1, 2, 4, 8], "backend": "slow")");
  const std::vector<std::string> words = {"run", suite, "--out", out()};
  Running first(MOEGAUGE_WITH_FAULTS, words, folder_.path());
  while (first.err().find("[1/4]") == std::string::npos) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const std::filesystem::path beside = folder_.path() / "beside";
  std::filesystem::create_directories(beside);
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--resume"}}) {
    std::vector<std::string> again = words;
    again.insert(again.end(), more.begin(), more.end());
    const Finished second = run_command(MOEGAUGE_WITH_FAULTS, again, beside);
    EXPECT_EQ(second.code, 2);
    EXPECT_THAT(second.err, HasSubstr("another run is writing this journal; wait for it"));
  }
  EXPECT_EQ(first.wait().code, 0);
  EXPECT_EQ(load_result(out()).result.cases.size(), 4u);
}

TEST_F(Run, TheReproLineRepeatsOneCase) {
  run_suite(R"("tokens": [1, 2], "backend": "honest", "config": [{"BLOCK_SIZE_M": 8}, "default"])",
            {"--tokens", "4,8", "--seed", "7"});
  const CaseRecord record = load_result(out()).result.cases[2];
  ASSERT_THAT(record.repro, StartsWith("moegauge run "));
  EXPECT_THAT(record.repro, HasSubstr("--seed 7"));
  std::filesystem::remove(out());

  const auto start = std::chrono::steady_clock::now();
  const std::string command = std::string(MOEGAUGE_WITH_FAULTS) + record.repro.substr(8);
  const Finished finished = run_command("/bin/sh", {"-c", command}, folder_.path());
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("[1/1] " + record.id()));
  EXPECT_FALSE(std::filesystem::exists(out()));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(Run, AnotherSeedsJournalIsNotResumed) {
  run_suite(R"("backend": "honest")");
  const Finished finished = run_suite(R"("backend": "honest")", {"--resume", "--seed", "5"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.err, HasSubstr("journal"));
}

TEST_F(Run, AConfigFileOfAnotherDriverOrCompilerIsStale) {
  folder_.write("table.json",
                R"({"1": {"BLOCK_SIZE_M": 16}, "driver": "scripted 0", "compiler": "scripted 2"})");
  const Finished finished = run_suite(R"("backend": "honest", "config": "file:table.json")");
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(load_result(out()).result.cases[0].config.stale,
              ::testing::ElementsAre("driver: file has \"scripted 0\", this run \"scripted 1\""));
  EXPECT_THAT(finished.err, HasSubstr("table.json: stale, driver: file has \"scripted 0\""));
}

// Engines keep such files as they come; who reads the table must know that they would answer
// otherwise: between 1 and 3, 2 is as near to either, and an engine takes the first in the file.
TEST_F(Run, WarnsOnceOfAConfigFileThatAnEngineWouldReadOtherwise) {
  folder_.write("table.json", R"({"3": {"BLOCK_SIZE_M": 32}, "1": {"BLOCK_SIZE_M": 16}})");
  const Finished finished =
      run_suite(R"("backend": "honest", "tokens": [1, 2], "config": "file:table.json")");
  EXPECT_EQ(finished.code, 0);
  const std::string warning =
      "moegauge: warning: " + (folder_.path() / "table.json").string() + ": at M = 2 ";
  const std::size_t first = finished.err.find(warning);
  ASSERT_NE(first, std::string::npos) << finished.err;
  EXPECT_EQ(finished.err.find(warning, first + 1), std::string::npos) << finished.err;
}

// A journal holds what the files said when it was begun: each that the suite names, by its content.
TEST_F(Run, AJournalOfOtherFilesIsNotResumedAndNamesTheOneThatChanged) {
  folder_.write("trace.txt", "0 1\n");
  folder_.write("table.json", R"({"1": {"BLOCK_SIZE_M": 16}})");
  const std::string fields =
      R"("backend": "honest", "routing": "trace.txt", "config": "file:table.json")";
  const std::string model = read_file(folder_.path() / "config.json");
  const auto resume = [&] { return run_suite(fields, {"--resume"}); };
  ASSERT_EQ(run_suite(fields).code, 0);
  EXPECT_EQ(resume().code, 0);
  const auto refused_after = [&](const std::string& name, const std::string& text) {
    const std::string before = read_file(folder_.path() / name);
    folder_.write(name, text);
    const Finished finished = resume();
    folder_.write(name, before);
    EXPECT_EQ(finished.code, 2) << name;
    EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished.err;
    return finished.err;
  };
  EXPECT_THAT(refused_after("trace.txt", "1 0\n"), HasSubstr("trace.txt with content"));
  EXPECT_THAT(refused_after("table.json", R"({"1": {"BLOCK_SIZE_M": 32}})"),
              HasSubstr("table.json with content"));
  EXPECT_THAT(refused_after("config.json", model + " "), HasSubstr("config.json with content"));
  EXPECT_EQ(resume().code, 0) << "as it was";
}

// Two checkpoints of one shape, the second put in the first's place with its date.
TEST_F(Run, AJournalOfOtherWeightsIsNotResumed) {
  const std::filesystem::path fixture = CHECKPOINT_FIXTURE, weights = folder_.path() / "ck";
  std::filesystem::create_directory(weights);
  for (const char* file : {"config.json", "model.safetensors"}) {
    std::filesystem::copy_file(fixture / file, weights / file);
  }
  const auto run_weights = [&](const std::vector<std::string>& more) {
    std::vector<std::string> options = {"--weights", weights, "--layer", "0"};
    options.insert(options.end(), more.begin(), more.end());
    return run_suite(R"("backend": "honest")", options);
  };
  const Finished first = run_weights({});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(run_weights({"--resume"}).code, 0);
  const std::filesystem::path shard = weights / "model.safetensors";
  const auto written = std::filesystem::last_write_time(shard);
  std::string bytes = read_file(shard);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  folder_.write("ck/model.safetensors", bytes);
  std::filesystem::last_write_time(shard, written);
  const Finished finished = run_weights({"--resume"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.err, HasSubstr("model.safetensors with content"));
}

TEST_F(Run, AQuickLookIsNotResumedAsAFullMeasurementNorTheOtherWayRound) {
  const std::string fields = R"("backend": "honest")";
  ASSERT_EQ(run_suite(fields).code, 0);
  const std::string id = load_result(out()).result.cases.at(0).id();
  Finished finished = run_suite(fields, {"--iterate", id, "--resume"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.err, HasSubstr("measured for 0.5 s or "));
  ASSERT_EQ(run_suite(fields, {"--iterate", id}).code, 0);
  EXPECT_EQ(run_suite(fields, {"--iterate", id, "--resume"}).code, 0);
  finished = run_suite(fields, {"--resume"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.err, HasSubstr("8 weight sets or "));
}

// As the journal's header says it.
TEST_F(Run, AQuickLookLastsHalfASecondOrTheSuitesSecondsWhicheverIsLess) {
  const auto measured_for = [&](const std::string& seconds_per_case, bool iterating) {
    const std::string suite = folder_.write(
        "timed.json", R"({"schema": "moegauge.suite/1", "name": "test", "seconds_per_case": )" +
                          seconds_per_case + R"(, "cases": [{"model": "config.json",
                          "scheme": "bf16", "tokens": 1, "backend": "honest"}]})");
    std::vector<std::string> arguments = {suite, "--out", out()};
    if (iterating) {
      run(arguments);
      const std::string id = load_result(out()).result.cases.at(0).id();
      arguments.insert(arguments.end(), {"--iterate", id});
    }
    EXPECT_EQ(run(arguments).code, 0);
    const std::string journal = read_file(out() + ".journal");
    const std::size_t at = journal.find("measured for ");
    return journal.substr(at, journal.find(" s or", at) - at);
  };
  EXPECT_EQ(measured_for("2", false), "measured for 2");
  EXPECT_EQ(measured_for("2", true), "measured for 0.5");
  EXPECT_EQ(measured_for("0.1", true), "measured for 0.1");
}

TEST_F(Run, AnotherSelectionGoesOnWithTheSameJournal) {
  folder_.write("table.json", R"({"1": {"BLOCK_SIZE_M": 16}})");
  const std::string fields =
      R"("backend": "honest", "tokens": [1, 2], "config": ["default", "file:table.json"])";
  ASSERT_EQ(run_suite(fields, {"--filter", "*/default/*"}).code, 0);
  const Finished finished = run_suite(fields, {"--resume"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(load_result(out()).result.cases.size(), 4u);
}

// Rivals are compared on rounds that they shared: where one of two is missing from the journal, the
// other is measured again with it.
TEST_F(Run, ResumingMeasuresAPointThatIsIncompleteAsAWhole) {
  const std::string fields = R"("backend": "honest", "config": ["default", {"BLOCK_SIZE_M": 8}])";
  run_suite(fields);
  const std::string journal = read_file(out() + ".journal");
  const std::size_t second_end = journal.find('\n', journal.find('\n') + 1);
  std::filesystem::remove(out());
  folder_.write("result.json.journal",
                journal.substr(0, second_end + 40));  // header, one case, a cut one
  EXPECT_EQ(run_suite(fields, {"--resume"}).code, 0);
  EXPECT_EQ(load_result(out()).result.comparisons.size(), 1u);
}

TEST_F(Run, ShardsShareTheWork) {
  const std::string fields = R"("backend": "honest", "tokens": [1, 2, 4])";
  run_suite(fields, {"--shard", "1/2"});
  EXPECT_EQ(load_result(out()).result.cases.size(), 2u);
  run_suite(fields, {"--shard", "2/2"});
  EXPECT_EQ(load_result(out()).result.cases.size(), 1u);
}

// Named by the case alone: a folder may be another shard's too, and another selection's.
TEST_F(Run, DumpsOfOtherCasesStayAsTheyAre) {
  const std::filesystem::path dump = folder_.path() / "dump";
  const auto contents = [&] {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(dump)) {
      files[entry.path().filename()] = read_file(entry.path());
    }
    return files;
  };
  const std::string fields = R"("backend": "honest", "tokens": [1, 2, 4])";
  ASSERT_EQ(run_suite(fields, {"--dump", dump, "--shard", "1/2"}).code, 0);
  const auto first = contents();
  EXPECT_EQ(first.size(), 2u);
  ASSERT_EQ(run_suite(fields, {"--dump", dump, "--shard", "2/2"}).code, 0);
  const auto both = contents();
  EXPECT_EQ(both.size(), 3u);
  for (const auto& [name, bytes] : first) EXPECT_EQ(both.at(name), bytes) << name;
  ASSERT_EQ(run_suite(fields, {"--dump", dump, "--filter", "*/M=4", "--resume"}).code, 0);
  EXPECT_EQ(contents(), both) << "the same case again, under the same name";
  const std::string id = load_result(out()).result.cases.at(0).id();
  EXPECT_THAT(both, Contains(Key(StartsWith("case-fused_moe_"))));
  EXPECT_THAT(both, Contains(Pair(HasSubstr("M=4-"), HasSubstr(id))));
}

// A case that gives no output now must not seem to have given what it gave before.
TEST_F(Run, AnOlderDumpOfTheSameCaseIsGone) {
  const std::filesystem::path dump = folder_.path() / "dump";
  const std::string fields = R"("backend": "honest")";
  ASSERT_EQ(run_suite(fields, {"--dump", dump}).code, 0);
  EXPECT_FALSE(std::filesystem::is_empty(dump));
  ASSERT_EQ(run_suite(fields, {"--dump", dump, "--budget", "0.000001s"}).code, 4);
  EXPECT_TRUE(std::filesystem::is_empty(dump));
}

TEST_F(Run, WorksFromAnyFolder) {
  const Finished finished =
      run_command("/bin/sh",
                  {"-c", std::string("cd / && ") + MOEGAUGE_WITH_FAULTS + " run " +
                             folder_.suite(R"("backend": "honest")") + " --out " + out()},
                  folder_.path());
  EXPECT_EQ(finished.code, 0) << finished.err;
}

TEST_F(Run, HelpNamesEveryOption) {
  const Finished finished = run({"--help"});
  EXPECT_EQ(finished.code, 0);
  for (const char* option : {"--out", "--backend", "--device", "--filter", "--tokens", "--shard",
                             "--resume", "--retries", "--budget", "--timeout", "--seed", "--quiet",
                             "--iterate", "--profile", "--dump", "--weights", "--layer"}) {
    EXPECT_THAT(finished.out, HasSubstr(option));
  }
}

}  // namespace
}  // namespace moegauge
