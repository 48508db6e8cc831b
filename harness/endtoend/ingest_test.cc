#include "harness/endtoend/ingest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/endtoend/sha256.h"
#include "reference/base/input_error.h"
#include "reference/base/text_file.h"

namespace moegauge {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

const std::string folder = "harness/endtoend/testdata/";

std::vector<EndToEndRow> ingest_files(const std::vector<std::string>& names,
                                      const IngestOptions& options = {}) {
  std::vector<NamedText> files;
  for (const std::string& name : names) files.push_back({name, read_text_file(folder + name)});
  return ingest(files, options);
}

std::vector<EndToEndRow> ingest_text(const std::string& text, const IngestOptions& options = {}) {
  const NamedText file{"p", text};
  return ingest(std::span(&file, 1), options);
}

std::string refusal(const std::string& text, const IngestOptions& options = {}) {
  try {
    ingest_text(text, options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

constexpr const char* two_runs =
    "Throughput: 6.47 requests/s, 13159.90 total tokens/s, 6468.73 output tokens/s\n"
    "Throughput: 7.94 requests/s, 16143.27 total tokens/s, 7937.78 output tokens/s\n";

TEST(Sha256, GivesTheDigestsOfTheStandard) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Ingest, TellsRunsOfOnePointApartAndTakesTheOneAskedFor) {
  const auto rows = ingest_text(two_runs);
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0].variant(), "1");
  EXPECT_EQ(rows[1].variant(), "2");
  const auto second = ingest_text(two_runs, {.variant = "2"});
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_EQ(second[0].number("requests_per_s"), 7.94);
  EXPECT_EQ(refusal(two_runs, {.variant = "3"}),
            "--variant: no row is of \"3\"; did you mean \"1\"?");
}

TEST(Ingest, AddsWhatTheFilesDoNotSay) {
  const auto rows = ingest_text(
      two_runs,
      {.variant = "1", .model = "org/m", .labels = {{"input_output", "1000-1000"}}, .gpus = 8});
  EXPECT_EQ(rows[0].point(), "serve/org/m/input_output=1000-1000");
  EXPECT_EQ(rows[0].number("total_tokens_per_s_per_gpu"), 13159.90 / 8);
  EXPECT_EQ(rows[0].number("gpus"), 8);
}

TEST(Ingest, KeepsWhereEachNumberIsFrom) {
  const auto rows = ingest_text(two_runs);
  EXPECT_EQ(rows[1].source.text(), "p:2");
  EXPECT_EQ(rows[1].source.sha256, sha256(two_runs));
  EXPECT_EQ(rows[1].source.tool, "vllm bench throughput, its printed line");
}

TEST(Ingest, ALogJoinsTheScoreThatItIsOf) {
  const auto rows =
      ingest_files({"lm_eval_results.json", "samples_tiny_sums_2026-11-30T00-00-00.000001.jsonl"});
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].number("value"), 0.5);
  ASSERT_TRUE(rows[0].questions);
  EXPECT_THAT(rows[0].questions->right, testing::ElementsAre(0, 3));
  EXPECT_EQ(rows[0].unknown["lm_eval_version"], "0.4.13");
  EXPECT_EQ(rows[0].unknown["questions_from"]["file"],
            "samples_tiny_sums_2026-11-30T00-00-00.000001.jsonl");
}

TEST(Ingest, ALogOfAnotherRunIsRefused) {
  EXPECT_THROW(
      ingest_files({"lm_eval_results.json", "samples_tiny_sums_2026-11-30T00-00-00.000002.jsonl"}),
      InputError);
}

TEST(Ingest, QuestionsGiveAScoreWithoutAStandardErrorThatOfAShare) {
  constexpr const char* text = "GSM8K Accuracy\nMetric\tA\nexact_match, strict-match\t83.24%\n";
  EXPECT_EQ(ingest_text(text)[0].number("stderr"), std::nullopt);
  const auto rows = ingest_text(text, {.questions = 1319});
  EXPECT_NEAR(*rows[0].number("stderr"), 0.010288, 1e-6);  // sqrt(0.8324 * 0.1676 / 1318)
  EXPECT_EQ(rows[0].number("samples"), 1319);
  EXPECT_THAT(rows[0].unknown["stderr_from"].get<std::string>(), HasSubstr("--questions"));
}

TEST(Ingest, QuestionsAreTakenWhereTheStandardErrorIsZero) {
  const auto rows = ingest_text(
      "Tasks\tVersion\tFilter\tn-shot\tMetric\t\tValue\t\tStderr\n"
      "t\t3\tnone\t5\tacc\t_\t1.0\t_\t0.0\n"
      "u\t3\tnone\t5\tacc\t_\t0.5\t_\t0.1\n",
      {.questions = 50});
  EXPECT_EQ(rows[0].number("samples"), 50);
  EXPECT_EQ(rows[0].number("stderr"), 0);
  EXPECT_EQ(rows[1].number("stderr"), 0.1);
}

TEST(Ingest, ReadsWhatWindowsPutsBeforeTextAndRefusesItsOtherEncodingByName) {
  const std::string marked = std::string("\xEF\xBB\xBF") + "{\"requests_per_second\": 2}";
  const auto rows = ingest_text(marked);
  EXPECT_EQ(rows[0].number("requests_per_s"), 2);
  EXPECT_EQ(rows[0].source.sha256, sha256(marked));
  EXPECT_EQ(refusal("\xFF\xFET\1"), "p:1: the text is UTF-16; save it as UTF-8");
}

TEST(Ingest, TakesWhatIsNoNumberForAbsent) {
  const auto rows = ingest_text(
      R"({"request_throughput": 2, "mean_tpot_ms": NaN, "p99_tpot_ms": -Infinity, "note": "NaN \" Infinity"})");
  EXPECT_EQ(rows[0].numbers, (std::map<std::string, double>{{"requests_per_s", 2}}));
  EXPECT_EQ(rows[0].unknown["note"], "NaN \" Infinity");
  EXPECT_THAT(ingest_text(R"({"requests_per_second": 2, "elapsed_time": NaN})")[0].numbers,
              SizeIs(1));
  EXPECT_THAT(ingest_text(R"({"avg_latency": 2, "percentiles": {"50": NaN, "99": 3}})")[0].numbers,
              SizeIs(2));
}

TEST(Ingest, RefusesWhatNoRowCouldHold) {
  EXPECT_EQ(refusal(R"({"requests_per_second": NaN})"),
            "p: a result without a number; one of a run that ended well");
  EXPECT_EQ(refusal("Throughput: nan requests/s, nan total tokens/s, nan output tokens/s\n"),
            "p:1: a result without a number; one of a run that ended well");
  EXPECT_EQ(refusal("TTFT (ms)\n\nISL-OSL\tA\n1-1\t-5\n"),
            "p:4: ttft_ms.mean is -5; a number from 0");
  EXPECT_EQ(ingest_text("Processed prompts: 100%|#| 5/5 [00:01<00:00, nanit/s, est. speed input: "
                        "1.0 toks/s, output: 2.0 toks/s]\n")[0]
                .number("requests_per_s"),
            std::nullopt);
}

TEST(Ingest, ATableOfManyRowsTakesNoLongerThanItsLength) {
  std::string text = "TTFT (ms)\n\nISL-OSL\tA\n";
  constexpr int many = 100'000;
  for (int i = 1; i <= many; ++i) text += std::to_string(i) + "-1\t" + std::to_string(i) + "\n";
  EXPECT_THAT(ingest_text(text), SizeIs(many));
}

TEST(Ingest, AnEmptyFileIsRefused) {
  EXPECT_EQ(refusal(" \n"), "p:1: the file is empty; results of a tool, or pasted text");
}

}  // namespace
}  // namespace moegauge
