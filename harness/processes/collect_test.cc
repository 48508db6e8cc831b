// Processes are shell scripts here, in place of `moegauge run`: the last words of their command
// line are --out FILE --resume.
#include "harness/processes/collect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <utility>

#include "harness/judge/fake_result.h"
#include "harness/result/result_io.h"
#include "harness/testing/command.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Collect : public testing::Test {
 protected:
  Collect() {
    write_result(files_.path() / "whole.json", fake_result());
    sigprocmask(SIG_SETMASK, nullptr, &hooks_.interruption.wait_mask);
  }
  // Copies a result to its --out unless `commands` end it before.
  fs::path script(const std::string& commands) {
    const std::string file =
        files_.write("moegauge", "#!/bin/sh\nshift\n" + commands + "\ncp " +
                                     (files_.path() / "whole.json").string() + " \"$2\"\n");
    fs::permissions(file, fs::perms::owner_all);
    return file;
  }
  Collected collect_from(const fs::path& program, std::size_t count, double spacing = 0) {
    std::vector<MeasuringProcess> list;
    for (std::size_t i = 0; i < count; ++i) {
      list.push_back(
          {.name = std::to_string(i), .who = "build A", .program = program, .arguments = {"run"}});
    }
    claim_folder(folder_, "facts\n");
    return collect(folder_, list, spacing, hooks_);
  }
  std::string error_of(const fs::path& program) {
    try {
      collect_from(program, 1);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  }

  TestFolder files_;
  fs::path folder_ = files_.path() / "kept";
  CollectHooks hooks_;
};

TEST_F(Collect, KeepsAResultAndALogOfEachProcess) {
  const Collected collected = collect_from(script("echo measuring"), 3);
  EXPECT_EQ(collected.results.size(), 3u);
  EXPECT_EQ(collected.failed, "");
  EXPECT_EQ(read_file(folder_ / "2.log"), "measuring\n");
}

TEST_F(Collect, MeasuresOnlyWhatIsNotThere) {
  std::vector<bool> was_there;
  hooks_.finished = [&](std::size_t, bool already) { was_there.push_back(already); };
  collect_from(script(""), 2);
  EXPECT_EQ(collect_from(script(""), 3).results.size(), 3u);
  EXPECT_THAT(was_there, testing::ElementsAre(false, false, true, true, false));
}

TEST_F(Collect, SpacesOnlyWhatItMeasures) {
  const auto start = std::chrono::steady_clock::now();
  collect_from(script(""), 3, 0.2);  // two gaps
  const auto first = std::chrono::steady_clock::now();
  collect_from(script(""), 3, 60);  // none
  EXPECT_GE(first - start, std::chrono::milliseconds(400));
  EXPECT_LT(std::chrono::steady_clock::now() - first, std::chrono::seconds(10));
}

TEST_F(Collect, StopsWhereAskedAndGoesOnLater) {
  int asked = 0;
  hooks_.interruption.signal = [&] { return asked; };
  hooks_.finished = [&](std::size_t index, bool) {
    if (index == 1) asked = SIGINT;
  };
  const Collected stopped = collect_from(script(""), 4);
  EXPECT_EQ(stopped.interrupted_by, SIGINT);
  EXPECT_EQ(stopped.results.size(), 2u);
  asked = 0;
  hooks_.finished = [](std::size_t, bool) {};
  EXPECT_EQ(collect_from(script(""), 4).results.size(), 4u);
}

TEST_F(Collect, TellsAProcessThatWorksToStop) {
  int asked = 0;
  hooks_.interruption.signal = [&] { return asked; };
  hooks_.started = [&](std::size_t) { asked = SIGTERM; };
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(collect_from(script("exec sleep 60"), 1).interrupted_by, SIGTERM);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST_F(Collect, KillsAProcessThatIgnoresBeingTold) {
  int asked = 0;
  hooks_.interruption.signal = [&] { return asked; };
  hooks_.interruption.grace_seconds = 0.5;
  hooks_.started = [&](std::size_t) { asked = SIGTERM; };
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(collect_from(script("trap '' TERM; sleep 60; sleep 60"), 1).interrupted_by, SIGTERM);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST_F(Collect, EndsItsProcessHoweverItEndsItself) {
  const fs::path pid_file = files_.path() / "pid",
                 program = script("echo $$ > " + (files_.path() / "pid").string() + ".part; mv " +
                                  (files_.path() / "pid").string() + ".part " +
                                  (files_.path() / "pid").string() + "; exec sleep 300");
  const pid_t collector = ::fork();
  if (collector == 0) {
    collect_from(program, 1);
    ::_exit(0);
  }
  while (!fs::exists(pid_file)) ::usleep(10'000);
  const int measuring = std::stoi(read_file(pid_file));
  ::kill(collector, SIGKILL);
  ::waitpid(collector, nullptr, 0);
  // Gone, or a zombie that whoever adopted it has not waited for.
  const auto runs = [&] {
    std::ifstream stat("/proc/" + std::to_string(measuring) + "/stat");
    std::string pid, name, state;
    return static_cast<bool>(stat >> pid >> name >> state) && state != "Z" && state != "X";
  };
  for (int i = 0; i < 1000 && runs(); ++i) ::usleep(10'000);
  EXPECT_FALSE(runs());
}

TEST_F(Collect, TakesNoResultOfAProcessThatCrashedAfterIt) {
  const std::string crash =
      "cp " + (files_.path() / "whole.json").string() + " \"$2\"; kill -SEGV $$";
  EXPECT_THAT(collect_from(script(crash), 1).failed,
              HasSubstr("killed by SIGSEGV, after it wrote its result, which is not used"));
  EXPECT_THAT(collect_from(script(crash), 1).failed, HasSubstr("killed by SIGSEGV"));
}

TEST_F(Collect, RefusesABuildThatChangesMeanwhile) {
  const fs::path program = script("");
  hooks_.finished = [&](std::size_t, bool) { script("true"); };
  try {
    collect_from(program, 3);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("was built anew while it was measured"));
  }
}

TEST_F(Collect, SaysInALineWhyABuildLeftNoResult) {
  EXPECT_THAT(collect_from(script("echo gone >&2; kill -SEGV $$"), 1).failed,
              HasSubstr("killed by SIGSEGV, without a result (gone); see "));
  EXPECT_THAT(collect_from(script("exit 9"), 1).failed, HasSubstr("left with exit code 9"));
  EXPECT_THAT(error_of(script("echo 'moegauge: x: wrong; right' >&2; exit 2")),
              HasSubstr("refused its input (x: wrong; right)"));
  EXPECT_THAT(error_of(files_.path() / "nothing"),
              HasSubstr("build A: " + (files_.path() / "nothing").string() +
                        " cannot be started: No such file or directory"));
}

TEST_F(Collect, TakesACaseThatFailedForAResult) {
  EXPECT_EQ(
      collect_from(script("cp " + (files_.path() / "whole.json").string() + " \"$2\"; exit 3"), 2)
          .results.size(),
      2u);
}

TEST_F(Collect, StopsWhereNothingIsWorthMore) {
  hooks_.worth_going_on = [](const std::vector<Result>& results) { return results.size() < 2; };
  EXPECT_EQ(collect_from(script(""), 5).results.size(), 2u);
}

TEST_F(Collect, RefusesAFolderOfSomethingElse) {
  claim_folder(folder_, "suite a\nbuild 1\n");
  EXPECT_NO_THROW(claim_folder(folder_, "suite a\nbuild 1\n"));
  try {
    claim_folder(folder_, "suite a\nbuild 2\n");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"build 1\", now \"build 2\""));
  }
  EXPECT_THROW(claim_folder(files_.path(), "facts\n"), InputError) << "holds other files";
  EXPECT_THROW(claim_folder(files_.path() / "whole.json", "facts\n"), InputError);
}

TEST_F(Collect, AnotherBuildHasOtherFacts) {
  const std::string before = build_facts(script(""));
  EXPECT_EQ(build_facts(script("")).substr(0, 8), before.substr(0, 8));
  EXPECT_NE(build_facts(script("true")), before);
}

}  // namespace
}  // namespace moegauge
