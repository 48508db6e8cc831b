#include "harness/result/result_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <sstream>

#include "harness/result/benchmark_rows.h"
#include "harness/result/json_fields.h"
#include "harness/result/record_testing.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

Result test_result() {
  Result result;
  result.context = {{"suite", "quick"}, {"note", "a\nb"}};
  result.cases = {test_measured(1), test_unmeasured(Status::skipped, "no tuned file", 4),
                  test_measured(16)};
  Comparison comparison;
  comparison.point = point_id(test_coordinates());
  comparison.a = test_measured(1).id();
  comparison.b = test_measured(16).id();
  comparison.ratio = 0.75;
  comparison.ci_low = 0.5;
  comparison.ci_high = 1.25;
  comparison.pairs = 9;
  result.comparisons = {comparison};
  return result;
}

class ResultFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = test_folder() / ("moegauge_result_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    file_ = folder_ / "r.json";
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string refusal(const std::string& text) {
    std::ofstream(file_, std::ios::binary) << text;
    try {
      load_result(file_);
    } catch (const InputError& error) {
      return std::string(error.what()).substr(file_.string().size());
    }
    return "accepted";
  }
  std::size_t files_in_folder() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_, file_;
};

TEST_F(ResultFile, HasItsKeysInOrderAndOneCaseALine) {
  write_result(file_, test_result());
  const std::string text = contents(file_);
  const Json json = Json::parse(text);
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_EQ(keys,
            (std::vector<std::string>{"schema", "context", "comparisons", "cases", "benchmarks"}));
  EXPECT_EQ(json["schema"], "moegauge.result/1");
  EXPECT_NE(text.find("\n" + case_to_line(test_measured(1)) + ",\n" +
                      case_to_line(test_unmeasured(Status::skipped, "no tuned file", 4)) + ",\n" +
                      case_to_line(test_measured(16)) + "\n],\n"),
            std::string::npos);
}

TEST_F(ResultFile, DescribesTheMachineInGoogleBenchmarksKeysAndTheRunInStrings) {
  write_result(file_, test_result());
  const Json context = Json::parse(contents(file_))["context"];
  for (const auto* key : {"date", "host_name", "executable"})
    EXPECT_TRUE(context[key].is_string()) << key;
  EXPECT_GE(context["num_cpus"].get<int>(), 1);
  EXPECT_TRUE(context["caches"].is_array());
  EXPECT_TRUE(context["load_avg"].is_array());
  EXPECT_THAT(context["date"].get<std::string>(),
              testing::MatchesRegex("[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+[-+][0-9]+:[0-9]+"));
  EXPECT_EQ(context["suite"], "quick");
  EXPECT_EQ(context["note"], "a\nb");
}

TEST_F(ResultFile, ComesBackAndIsWrittenAgainAsItWas) {
  write_result(file_, test_result());
  const std::string first = contents(file_);
  const LoadedResult loaded = load_result(file_);
  EXPECT_FALSE(loaded.truncated);
  EXPECT_EQ(loaded.result.context, test_result().context);
  ASSERT_EQ(loaded.result.comparisons.size(), 1u);
  EXPECT_EQ(loaded.result.comparisons[0].ratio, 0.75);
  EXPECT_EQ(loaded.result.comparisons[0].pairs, 9);
  ASSERT_EQ(loaded.result.cases.size(), 3u);
  write_result(file_, loaded.result);
  EXPECT_EQ(contents(file_), first);  // also the date and the machine that measured
}

TEST_F(ResultFile, OfNothingIsStillAResult) {
  write_result(file_, {});
  EXPECT_TRUE(load_result(file_).result.cases.empty());
}

TEST_F(ResultFile, CutAtAnyByteYieldsItsWholeCases) {
  Result result = test_result();
  result.cases[2] =
      test_unmeasured(Status::crashed, "signal 11", 64);  // fewer rows, fewer bytes to cut
  write_result(file_, result);
  const std::string text = contents(file_);
  // Where each case line ends, found without the reader.
  std::vector<std::size_t> ends;
  for (const auto& record : result.cases) {
    const std::string line = case_to_line(record);
    ends.push_back(text.find(line) + line.size());
  }
  const std::size_t schema_end = text.find("\"moegauge.result/1\"") + 19;
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    std::ofstream(file_, std::ios::binary) << text.substr(0, cut);
    if (cut < schema_end) {
      EXPECT_THROW(load_result(file_), InputError) << cut;
      continue;
    }
    const LoadedResult loaded = load_result(file_);
    const auto whole = static_cast<std::size_t>(
        std::ranges::count_if(ends, [&](std::size_t end) { return end <= cut; }));
    ASSERT_EQ(loaded.result.cases.size(), whole) << cut;
    for (std::size_t i = 0; i < whole; ++i) {
      ASSERT_EQ(case_to_line(loaded.result.cases[i]), case_to_line(result.cases[i])) << cut;
    }
    // Without its last line break it is still whole.
    ASSERT_EQ(loaded.truncated.has_value(), cut + 1 < text.size()) << cut;
  }
}

TEST_F(ResultFile, SaysWhereItWasCut) {
  write_result(file_, test_result());
  const std::string text = contents(file_);
  const auto second = text.find("\"seed\"", text.find("no tuned file") - 200);
  std::ofstream(file_, std::ios::binary) << text.substr(0, second);
  const auto line =
      std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(second), '\n') + 1;
  const auto column = second - text.rfind('\n', second);
  EXPECT_EQ(load_result(file_).truncated, file_.string() + ": cut at line " + std::to_string(line) +
                                              ", column " + std::to_string(column) +
                                              "; whole cases read: 1");
}

TEST_F(ResultFile, IsRefusedWhereItIsNone) {
  EXPECT_EQ(refusal(""), ": the file is empty; a moegauge.result/1 file is expected");
  EXPECT_EQ(refusal("[]"),
            ": no result: it holds no \"schema\"; a moegauge.result/1 file is expected");
  EXPECT_EQ(refusal("{\"benchmarks\": []}"),
            ": no result: it holds no \"schema\"; a moegauge.result/1 file is expected");
  EXPECT_EQ(refusal("{\"schema\": 1}"), ": /schema: found the number 1; a string is expected");
  EXPECT_EQ(refusal("{\"schema\": \"moegauge.suite/1\"}"),
            ": /schema: \"moegauge.suite/1\" is no result format; moegauge.result/1 is expected");
  EXPECT_EQ(refusal("{\"schema\": \"moegauge.result/1x\"}"),
            ": /schema: \"moegauge.result/1x\" is no result format; moegauge.result/1 is expected");
  EXPECT_EQ(refusal("{\"schema\": \"moegauge.result/2\"}"),
            ": /schema: the file is of version 2; this build reads moegauge.result/1");
  EXPECT_EQ(refusal("{\"schema\": \"moegauge.result/1\", \"context\": {}, \"comparisons\": []}"),
            ": the key \"cases\" is missing; add it");
  EXPECT_EQ(refusal("\x7f"
                    "ELF"),
            ":1:1: syntax error while parsing value - invalid literal");
  fs::remove(file_);
  EXPECT_THROW(load_result(file_), InputError);
  EXPECT_THROW(load_result(folder_), InputError);
}

TEST_F(ResultFile, IsRefusedWhereItIsDamagedBeforeItsEnd) {
  write_result(file_, test_result());
  std::string text = contents(file_);
  text.replace(text.find("\"comparisons\""), 1, "x");
  EXPECT_EQ(
      refusal(text),
      ":4:1: syntax error while parsing object key - invalid literal; expected string literal");
}

TEST_F(ResultFile, IsRefusedWithTheSameCaseTwice) {
  Result result = test_result();
  result.cases.push_back(test_measured(1));
  write_result(file_, result);
  EXPECT_EQ(refusal(contents(file_)), ": /cases/3: the case " + test_measured(1).id() +
                                          " appears twice; a result holds each case once");
}

TEST_F(ResultFile, OfANewerMinorVersionKeepsWhatItDoesNotKnow) {
  write_result(file_, test_result());
  std::string text = contents(file_);
  text.replace(text.find("moegauge.result/1"), 17, "moegauge.result/1.7");
  text.replace(text.rfind("\n}"), 2, ",\n\"power\": {\"w\":3}\n}");
  text.replace(text.find("\"suspect\":true"), 14, "\"suspect\":true,\"energy_j\":2");
  std::ofstream(file_, std::ios::binary) << text;
  const LoadedResult loaded = load_result(file_);
  EXPECT_EQ(loaded.result.minor_version, 7);
  EXPECT_EQ(loaded.result.unknown.dump(), R"({"power":{"w":3}})");
  EXPECT_EQ(loaded.result.cases.at(0).unknown.dump(), R"({"energy_j":2})");
  write_result(file_, loaded.result);
  EXPECT_TRUE(nlohmann::json::parse(contents(file_)) == nlohmann::json::parse(text));
}

TEST_F(ResultFile, KeepsTheOldFileWhenTheDiskIsFull) {
  std::ofstream(file_) << "the old file";
  // A limit on the size of files stands for the full disk: the write stops half way.
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_result(file_, test_result());
      ::_exit(1);
    } catch (const InputError& error) {
      const std::string expected =
          file_.string() +
          ": cannot write: File too large; the old file, if any, is untouched; give a writable "
          "place with room";
      ::_exit(error.what() == expected ? 0 : 2);
    }
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(contents(file_), "the old file");
  EXPECT_EQ(files_in_folder(), 1u);
}

std::string write_refusal(const fs::path& file) {
  try {
    write_result(file, test_result());
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_F(ResultFile, NamesTheFileAndTheReasonWhenItCannotBeWritten) {
  const std::string right = "; the old file, if any, is untouched; give a writable place with room";
  EXPECT_EQ(write_refusal("/dev/full"), "/dev/full: cannot write: No space left on device" + right);
  EXPECT_EQ(write_refusal("/dev/null"), "accepted");
  EXPECT_EQ(write_refusal(folder_), folder_.string() + ": cannot write: Is a directory" + right);
  EXPECT_EQ(
      write_refusal(folder_ / "no" / "r.json"),
      (folder_ / "no" / "r.json").string() + ": cannot write: No such file or directory" + right);
}

TEST_F(ResultFile, KeepsLinksAndModes) {
  const fs::path real = folder_ / "real.json";
  std::ofstream(real) << "old";
  ::chmod(real.c_str(), 0640);
  fs::create_symlink("real.json", file_);
  write_result(file_, test_result());
  EXPECT_TRUE(fs::is_symlink(file_));
  EXPECT_EQ(load_result(real).result.cases.size(), 3u);
  struct stat found = {};
  ::stat(real.c_str(), &found);
  EXPECT_EQ(found.st_mode & 0777, 0640u);
}

TEST_F(ResultFile, IsNeverSeenHalfWritten) {
  Result small = test_result(), large = test_result();
  small.cases.resize(1);
  for (std::int64_t tokens = 100; tokens < 300; ++tokens)
    large.cases.push_back(test_measured(tokens));
  write_result(file_, small);
  const pid_t writer = ::fork();
  if (writer == 0) {
    for (int i = 0; i < 40; ++i) write_result(file_, i % 2 == 0 ? large : small);
    ::_exit(0);
  }
  int status = -1, reads = 0;
  while (::waitpid(writer, &status, WNOHANG) == 0) {
    const LoadedResult seen = load_result(file_);
    ASSERT_FALSE(seen.truncated);
    ASSERT_THAT(seen.result.cases.size(), testing::AnyOf(small.cases.size(), large.cases.size()));
    ++reads;
  }
  EXPECT_EQ(status, 0);
  EXPECT_GT(reads, 0);
}

TEST(BenchmarkRows, AreOneIterationPerSampleAndFourAggregatesInNanoseconds) {
  const auto rows = benchmark_rows(test_measured(), 5);
  const std::string id = test_measured().id();
  ASSERT_EQ(rows.size(), 3u + 4u);
  EXPECT_EQ(
      rows[1].dump(),
      R"({"name":")" + id + R"(","family_index":5,"per_family_instance_index":0,"run_name":")" +
          id +
          R"(","run_type":"iteration","repetitions":3,"repetition_index":1,"threads":1,"iterations":1,)"
          R"("real_time":120500.0,"cpu_time":120500.0,"time_unit":"ns"})");
  EXPECT_EQ(
      rows[3].dump(),
      R"({"name":")" + id +
          R"(_mean","family_index":5,"per_family_instance_index":0,"run_name":")" + id +
          R"(","run_type":"aggregate","repetitions":3,"threads":1,"aggregate_name":"mean",)"
          R"("aggregate_unit":"time","iterations":3,"real_time":121250.0,"cpu_time":121250.0,"time_unit":"ns"})");
  EXPECT_EQ(rows[4]["aggregate_name"], "median");
  EXPECT_EQ(rows[4]["real_time"], 120500.0);
  // Sample deviation of 118.25, 120.5, 125 about their mean 121.25: sqrt((9 + 0.5625 + 14.0625) /
  // 2).
  EXPECT_NEAR(rows[5]["real_time"].get<double>(), 3436.93, 0.01);
  EXPECT_NEAR(rows[6]["real_time"].get<double>(), 3.43693 / 121.25, 1e-6);
}

// 1, 2, ... 45, the last first: rows stand for three samples each, of which each is the middle one.
TEST(BenchmarkRows, OfManySamplesAreEvenlySpacedOrderStatisticsInTheOrderMeasured) {
  CaseRecord record = test_measured();
  auto& latency = std::get<Measured>(record.outcome).latency;
  latency.samples = {45};
  for (int i = 1; i < 45; ++i) latency.samples.push_back(i);
  latency.median = 23;
  const auto rows = benchmark_rows(record, 0);
  ASSERT_EQ(rows.size(), 15u + 4u);
  for (int i = 0; i < 15; ++i) {
    EXPECT_EQ(rows[static_cast<std::size_t>(i)]["real_time"], (3 * i + 2) * 1e3);
    EXPECT_EQ(rows[static_cast<std::size_t>(i)]["repetitions"], 15);
    EXPECT_EQ(rows[static_cast<std::size_t>(i)]["repetition_index"], i);
  }
  EXPECT_EQ(rows[7]["real_time"], 23e3) << "the median of all samples is a row";
  EXPECT_EQ(rows[16]["real_time"], 23e3);
  EXPECT_EQ(rows[16]["iterations"], 45) << "aggregates are of all";
  std::ranges::reverse(latency.samples);
  EXPECT_EQ(benchmark_rows(record, 0)[0]["real_time"], 44e3);
}

TEST(BenchmarkRows, LeaveOutWhatIsNotOk) {
  EXPECT_TRUE(benchmark_rows(test_unmeasured(Status::inaccurate, "zeros"), 0).empty());
}

}  // namespace
}  // namespace moegauge
