#include "harness/endtoend/readers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "reference/base/input_error.h"
#include "reference/base/text_file.h"

namespace moegauge {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* folder = "harness/endtoend/testdata/";

TEST(Pasted, AServingBlockGivesEveryNumberAndKeepsWhatItDoesNotKnow) {
  const auto rows = read_pasted(
      "============ Serving Benchmark Result ============\n"
      "Successful requests:          160\n"
      "Request throughput (req/s):   1.06\n"
      "Total Token throughput (tok/s): 2127.93\n"
      "Peak requests held:           12\n"
      "---------------Time to First Token----------------\n"
      "Mean TTFT (ms):               268.25\n"
      "P99 TTFT (ms):                1199.93\n"
      "Median ITL (ms):              29.34\n"
      "==================================================\n",
      "paste.txt");
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].op, "serve");
  EXPECT_EQ(rows[0].number("requests"), 160);
  EXPECT_EQ(rows[0].number("requests_per_s"), 1.06);
  EXPECT_EQ(rows[0].number("total_tokens_per_s"), 2127.93);
  EXPECT_EQ(rows[0].number("ttft_ms.mean"), 268.25);
  EXPECT_EQ(rows[0].number("ttft_ms.p99"), 1199.93);
  EXPECT_EQ(rows[0].number("itl_ms.median"), 29.34);
  EXPECT_EQ(rows[0].unknown["Peak requests held"], 12);
  EXPECT_EQ(rows[0].source.text(), "paste.txt:1");
  EXPECT_EQ(rows[0].source.tool, "vllm bench serve, its printed block");
}

TEST(Pasted, ThroughputLines) {
  const auto rows = read_pasted(
      "Throughput: 6.47 requests/s, 13159.90 total tokens/s, 6468.73 output tokens/s\n"
      "Throughput: 7.94 requests/s, 16143.27 total tokens/s, 7937.78 output tokens/s\n",
      "p");
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[1].number("requests_per_s"), 7.94);
  EXPECT_EQ(rows[1].number("total_tokens_per_s"), 16143.27);
  EXPECT_EQ(rows[1].number("output_tokens_per_s"), 7937.78);
}

TEST(Pasted, AProgressLineAndTheTableBelowItAreOfOneModelAndBlankCellsContinue) {
  const auto rows = read_pasted(
      "Processed prompts: 100%|████| 1319/1319 [00:48<00:00, 27.46it/s, est. speed input: 23890.23 "
      "toks/s, output: 2823.34 toks/s\n"  // as pasted: without its last bracket
      "vllm (pretrained=org/scout,tensor_parallel_size=4), gen_kwargs: (None), limit: None\n"
      "|Tasks|Version|     Filter     |n-shot|  Metric   |   |Value |   |Stderr|\n"
      "|-----|------:|----------------|-----:|-----------|---|-----:|---|-----:|\n"
      "|gsm8k|      3|flexible-extract|     5|exact_match|↑  |0.9189|±  |0.0075|\n"
      "|     |       |strict-match    |     5|exact_match|↑  |0.9045|±  |N/A|\n",
      "p");
  ASSERT_THAT(rows, SizeIs(3));
  EXPECT_EQ(rows[0].model, "org/scout");
  EXPECT_EQ(rows[0].number("requests_per_s"), 27.46);
  EXPECT_EQ(rows[0].number("input_tokens_per_s"), 23890.23);
  EXPECT_EQ(rows[1].model, "org/scout");
  EXPECT_EQ(rows[1].number("value"), 0.9189);
  EXPECT_EQ(rows[1].number("stderr"), 0.0075);
  EXPECT_EQ(rows[2].labels.at("task"), "gsm8k");
  EXPECT_EQ(rows[2].labels.at("version"), "3");
  EXPECT_EQ(rows[2].labels.at("filter"), "strict-match");
  EXPECT_EQ(rows[2].number("stderr"), std::nullopt);
}

TEST(Pasted, ATableWithTabsAndUnderlines) {
  const auto rows = read_pasted(
      "Tasks\tVersion\tFilter\tn-shot\tMetric\t\tValue\t\tStderr\n"
      "gsm8k\t3\tflexible-extract\t5\texact_match\t_\t0.9272\t_\t0.0072\n"
      "\t\tstrict-match\t5\texact_match\t_\t0.9295\t_\t0.0071\n",
      "p");
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[1].labels.at("task"), "gsm8k");
  EXPECT_EQ(rows[1].number("value"), 0.9295);
  EXPECT_EQ(rows[1].number("stderr"), 0.0071);
}

TEST(Pasted, AColumnPerVariantAndNoAverages) {
  const auto rows = read_pasted(
      "org/model-a\n\nTTFT (ms)\n\nISL-OSL\tUntuned\tTuned\n512-512\t1176.38\t982.67\n"
      "16384-2048\t126817.12\t131106.68\nAverage\t24749.45\t24955.37\n\n"
      "TPOT (ms)\n\nISL-OSL\tUntuned\tTuned\n512-512\t35.04\t33.18\n",
      "p");
  ASSERT_THAT(rows, SizeIs(4));
  EXPECT_EQ(rows[0].model, "org/model-a");
  EXPECT_EQ(rows[0].labels.at("variant"), "Untuned");
  EXPECT_EQ(rows[3].labels.at("input_output"), "16384-2048");
  EXPECT_EQ(rows[3].number("ttft_ms.mean"), 131106.68);
  // Another number of the same point joins its row, which names both lines.
  EXPECT_EQ(rows[1].number("ttft_ms.mean"), 982.67);
  EXPECT_EQ(rows[1].number("tpot_ms.mean"), 33.18);
  EXPECT_EQ(rows[1].source.text(), "p:6,13");
  EXPECT_EQ(rows[0].point(), rows[1].point());
  EXPECT_NE(rows[0].point(), rows[2].point());
}

TEST(Pasted, ThroughputPerDeviceBeforeAndAfter) {
  const auto rows = read_pasted(
      "Total tokens per second and GPU\n"
      "Parallelism\tConcurrency\tPrevious\tPatched\tChange\nTP8\t1\t99.88\t104.94\t+5.1%\n",
      "p");
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[1].labels.at("parallelism"), "TP8");
  EXPECT_EQ(rows[1].labels.at("variant"), "Patched");
  EXPECT_EQ(rows[1].number("total_tokens_per_s_per_gpu"), 104.94);
  const auto points = read_pasted(
      "Sequence\tParallelism\tConcurrency\tTotal tok/s/GPU\n8K/1K\tTP8+EP8\t256\t1469.05\n", "p");
  ASSERT_THAT(points, SizeIs(1));
  EXPECT_EQ(points[0].labels.at("input_output"), "8K/1K");
  EXPECT_FALSE(points[0].labels.contains("variant"));
  EXPECT_EQ(points[0].number("total_tokens_per_s_per_gpu"), 1469.05);
}

TEST(Pasted, ATitleOrAHeadSaysWhichNumberAColumnIs) {
  using Numbers = std::map<std::string, double>;
  const auto numbers = [](const std::string& text) { return read_pasted(text, "p")[0].numbers; };
  const auto under = [&](const std::string& title) {
    return numbers(title + "\nParallelism\tBefore\nTP8\t5\n").begin()->first;
  };
  EXPECT_EQ(under("TTFT (ms)"), "ttft_ms.mean");
  EXPECT_EQ(under("P99 TTFT (ms)"), "ttft_ms.p99");
  EXPECT_EQ(under("Median time to first token"), "ttft_ms.median");
  EXPECT_EQ(under("ITL, 99.9th percentile"), "itl_ms.p99.9");
  EXPECT_EQ(under("Average E2E Latency (ms)"), "e2e_ms.mean");
  EXPECT_EQ(under("Output throughput (tok/s)"), "output_tokens_per_s");
  EXPECT_EQ(under("Input 8K, output 1K, total tokens per second and GPU."),
            "total_tokens_per_s_per_gpu");
  EXPECT_EQ(under("Input + output tokens/s"), "total_tokens_per_s");
  EXPECT_EQ(under("Request throughput (req/s)"), "requests_per_s");
  EXPECT_EQ(under("Total-tok/s/GPU"), "total_tokens_per_s_per_gpu");  // no model, for its slashes
  // Head and title together, several numbers of one point, and points that stand behind them.
  EXPECT_EQ(numbers("TTFT (ms)\nSequence\tMean\tP99\n1K/1K\t3\t9\n"),
            (Numbers{{"ttft_ms.mean", 3}, {"ttft_ms.p99", 9}}));
  EXPECT_EQ(numbers("Throughput per GPU\nSequence\tOutput tok/s\n1K/1K\t3\n"),
            (Numbers{{"output_tokens_per_s_per_gpu", 3}}));
  const auto rows = read_pasted(
      "Parallelism\tOutput tok/s\tTTFT (ms)\tGPUs\tConcurrency\nTP8\t900\t12.5\t8\t64\n", "p");
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].numbers,
            (Numbers{{"output_tokens_per_s", 900}, {"ttft_ms.mean", 12.5}, {"gpus", 8}}));
  EXPECT_EQ(rows[0].point(), "serve/-/parallelism=TP8/concurrency=64");
  // Two columns of one number are variants.
  const auto two = read_pasted("Sequence\tOld TTFT (ms)\tNew TTFT (ms)\n1K/1K\t3\t2\n", "p");
  ASSERT_THAT(two, SizeIs(2));
  EXPECT_EQ(two[1].variant(), "New TTFT (ms)");
  EXPECT_EQ(two[1].number("ttft_ms.mean"), 2);
}

TEST(Pasted, PercentilesOfATableByLengthAreNoMeans) {
  const auto rows =
      read_pasted("TTFT (ms)\nISL-OSL\tA\n1-1\t5\n\nP99 TTFT (ms)\nISL-OSL\tA\n1-1\t9\n", "p");
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].number("ttft_ms.mean"), 5);
  EXPECT_EQ(rows[0].number("ttft_ms.p99"), 9);
}

TEST(Pasted, PercentagesOfAnAccuracyTable) {
  const auto rows =
      read_pasted("Metric\tUntuned\tTuned\nexact_match, strict-match\t83.24%\t83.40%\n", "p");
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0].op, "eval");
  EXPECT_EQ(rows[1].number("value"), 0.834);  // not 83.40 / 100, which rounds
  EXPECT_EQ(rows[1].labels.at("metric"), "exact_match");
  EXPECT_EQ(rows[1].labels.at("filter"), "strict-match");
  EXPECT_EQ(rows[1].number("stderr"), std::nullopt);
}

TEST(Pasted, TextThatHoldsNoResultIsRefused) {
  EXPECT_THROW(read_pasted("It was much faster.\n", "mail.txt"), InputError);
}

TEST(ToolJson, WhatLmEvaluationHarnessWrote) {
  const std::string file = std::string(folder) + "lm_eval_results.json";
  const auto rows = read_tool_json(read_text_file(file), file);
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].op, "eval");
  EXPECT_EQ(rows[0].labels.at("task"), "tiny_sums");
  EXPECT_EQ(rows[0].labels.at("metric"), "acc");
  EXPECT_EQ(rows[0].labels.at("filter"), "none");
  EXPECT_EQ(rows[0].number("value"), 0.5);
  EXPECT_EQ(rows[0].number("stderr"), 0.28867513459481287);
  EXPECT_EQ(rows[0].number("samples"), 4);
}

TEST(ToolJson, AStandardErrorThatIsNotApplicableIsAbsent) {
  const auto rows = read_tool_json(
      R"({"results": {"t": {"alias": "t", "bleu,none": 0.3, "bleu_stderr,none": "N/A"}}})", "r");
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].number("stderr"), std::nullopt);
}

TEST(ToolJson, AServingResultOfVllm) {
  const auto rows = read_tool_json(
      R"({"date": "20261130", "model_id": "m", "max_concurrency": 32, "request_throughput": 1.36,
          "mean_ttft_ms": 191.74, "p99_itl_ms": 44.99, "ttfts": [0.1, 0.2], "rtfx": 3})",
      "s");
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].model, "m");
  EXPECT_EQ(rows[0].labels.at("concurrency"), "32");
  EXPECT_EQ(rows[0].number("requests_per_s"), 1.36);
  EXPECT_EQ(rows[0].number("ttft_ms.mean"), 191.74);
  EXPECT_EQ(rows[0].number("itl_ms.p99"), 44.99);
  EXPECT_EQ(rows[0].unknown["rtfx"], 3);
  EXPECT_EQ(rows[0].unknown["ttfts"], "a list of 2, not kept");
}

TEST(ToolJson, ThroughputAndLatencyResultsOfVllm) {
  const auto throughput = read_tool_json(
      R"({"elapsed_time": 2, "num_requests": 4, "requests_per_second": 2, "tokens_per_second": 9})",
      "t");
  EXPECT_EQ(throughput[0].number("total_tokens_per_s"), 9);
  const auto latency = read_tool_json(
      R"({"avg_latency": 0.5, "latencies": [0.5], "percentiles": {"50": 0.4, "99": 0.75}})", "l");
  EXPECT_EQ(latency[0].number("e2e_ms.mean"), 500);
  EXPECT_EQ(latency[0].number("e2e_ms.median"), 400);
  EXPECT_EQ(latency[0].number("e2e_ms.p99"), 750);
}

TEST(ToolJson, AnythingElseIsRefused) {
  EXPECT_THROW(read_tool_json("{\"a\": 1}", "x"), InputError);
  EXPECT_THROW(read_tool_json("[]", "x"), InputError);
}

TEST(JsonLines, AnswersOfSingleQuestions) {
  const std::string file =
      std::string(folder) + "samples_tiny_sums_2026-11-30T00-00-00.000001.jsonl";
  const auto rows = read_json_lines(read_text_file(file), file);
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].labels.at("metric"), "acc");
  EXPECT_EQ(rows[0].labels.at("filter"), "none");
  EXPECT_EQ(rows[0].number("value"), 0.5);
  EXPECT_EQ(rows[0].number("samples"), 4);
  EXPECT_THAT(rows[0].questions->right, testing::ElementsAre(0, 3));
  EXPECT_THAT(rows[0].questions->wrong, testing::ElementsAre(1, 2));
  // What the harness itself gave for these answers.
  EXPECT_NEAR(*rows[0].number("stderr"), 0.28867513459481287, 1e-15);
}

TEST(JsonLines, TheTaskIsInTheNameThatTheHarnessGivesTheFile) {
  const std::string line = R"({"doc_id": 0, "filter": "none", "metrics": ["acc"], "acc": 1.0})";
  EXPECT_EQ(
      read_json_lines(line, "a/samples_gsm8k_cot_2026-11-30T10-00-00.5.jsonl")[0].labels.at("task"),
      "gsm8k_cot");
}

TEST(JsonLines, TruthIsRightOrWrong) {
  const auto rows = read_json_lines(
      "{\"doc_id\": 0, \"metrics\": [\"ok\"], \"ok\": true}\n"
      "{\"doc_id\": 1, \"metrics\": [\"ok\"], \"ok\": false}\n",
      "s");
  EXPECT_THAT(rows[0].questions->right, testing::ElementsAre(0));
}

TEST(JsonLines, AScoreBetweenRightAndWrongHasNoQuestions) {
  const auto rows = read_json_lines(
      "{\"doc_id\": 0, \"metrics\": [\"f1\"], \"f1\": 0.25}\n"
      "{\"doc_id\": 1, \"metrics\": [\"f1\"], \"f1\": 0.75}\n",
      "s");
  EXPECT_EQ(rows[0].number("value"), 0.5);
  EXPECT_FALSE(rows[0].questions);
}

TEST(JsonLines, RunsThatWereAppendedToOneFile) {
  const auto rows = read_json_lines(
      "{\"request_throughput\": 1, \"max_concurrency\": 1}\n"
      "{\"request_throughput\": 3, \"max_concurrency\": 4}\n",
      "s");
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[1].labels.at("concurrency"), "4");
  EXPECT_EQ(rows[1].source.text(), "s:2");
}

std::string refusal(const std::function<void()>& read) {
  try {
    read();
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Readers, BadInputIsOneLineWithFileAndLine) {
  const auto pasted = [](const std::string& text) {
    return refusal([&] { read_pasted(text, "p"); });
  };
  EXPECT_EQ(pasted("Tasks\tVersion\tFilter\tn-shot\tMetric\t\tValue\t\tStderr\n"
                   "t\t3\tnone\t5\tacc\t_\t0.9.2\t_\t0.1\n"),
            "p:2: \"0.9.2\" is no number; a score or its standard error is expected there");
  EXPECT_EQ(
      pasted("Throughput: fast\n"),
      "p:1: a Throughput: line of another form; Throughput: A requests/s, B total tokens/s, C "
      "output tokens/s");
  EXPECT_EQ(pasted("TTFT (ms)\nISL-OSL\tA\tB\n1-1\t5\n"),
            "p:3: a row of 2 cells under a head of 3; as many cells as the head has");
  EXPECT_THAT(pasted("speed\nISL-OSL\tA\n1-1\t5\n"), HasSubstr("p:2: the table is of speed"));
  for (const char* title : {"Latency (ms)", "tok/s per GPU", "Max TTFT (ms)", "TTFT (s)",
                            "Output tok/s/user", "TTFT and TPOT (ms)", "Results"})
    EXPECT_THAT(
        pasted(std::string(title) + "\nParallelism\tBefore\nTP8\t5\n"),
        HasSubstr("p:2: the table is of " + std::string(title) + ", which names no number"));
  EXPECT_THAT(pasted("Parallelism\tLatency (ms)\nTP8\t5\n"),
              HasSubstr("p:1: the column \"Latency (ms)\" names no number; a title or a column's"));
  EXPECT_THAT(pasted("TTFT\nParallelism\tA\tA\nTP8\t5\t6\n"),
              HasSubstr("p:2: two columns are called \"A\""));
  EXPECT_THAT(pasted("TTFT\nParallelism\tA\tB\nTP8\t5\t95%\n"),
              HasSubstr("p:3: \"95%\" is a share"));
  EXPECT_THAT(pasted("== Serving Benchmark Result ==\nMean TTFT (ms): x\n"),
              HasSubstr("p:2: \"x\" is no number"));
  EXPECT_THAT(pasted("== Serving Benchmark Result ==\n=====\n"), HasSubstr("p:1: a serving block"));
  EXPECT_THAT(pasted("== Serving Benchmark Result ==\nMean TTFT (ms): 1\n"
                     "== Serving Benchmark Result ==\n"),
              HasSubstr("p:3: a block begins within the one of p:1"));
  EXPECT_THAT(pasted("Processed prompts: 100%|#| 5/5 and so on\n"), HasSubstr("p:1: a progress"));
  EXPECT_THAT(refusal([] { read_tool_json("{\"request_throughput\": \"1\"}", "j"); }),
              HasSubstr("j:1: /request_throughput: found the string"));
  EXPECT_THAT(refusal([] { read_tool_json("{\"request_throughput\": 1", "j"); }),
              HasSubstr("j:1:"));
  EXPECT_THAT(refusal([] { read_tool_json("{\"results\": {}}", "j"); }),
              HasSubstr("j:1: /results"));
  EXPECT_THAT(refusal([] {
                read_json_lines("{\"doc_id\": 1, \"acc\": 1}\n{\"doc_id\": 1, \"acc\": 1}\n", "s");
              }),
              HasSubstr("s:2:1: /doc_id: question 1 appears twice"));
}

TEST(Readers, ALineOfMegabytesEndsNothing) {
  for (const char* begin : {"Processed prompts: 100%", "Throughput: ", "vllm (pretrained=", "Mean ",
                            "== Serving Benchmark Result ==\nMean TTFT (ms)", "Tasks\t", "| "}) {
    EXPECT_THROW(read_pasted(begin + std::string(4'000'000, 'x'), "p"), InputError) << begin;
    EXPECT_THROW(read_pasted(begin + std::string(4'000'000, ' ') + ":\n", "p"), InputError)
        << begin;
  }
}

TEST(Readers, AProgressBarThatIsSlowOrWroteOverItself) {
  const auto rows = read_pasted(
      "Processed prompts:  50%|##  | 2/4 [00:04<00:04,  2.00s/it, est. speed input: 1.00 toks/s, "
      "output: 1.00 toks/s]\rProcessed prompts: 100%|####| 4/4 [00:10<00:00,  2.50s/it, est. speed "
      "input: 4.00 toks/s, output: 8.00 toks/s]\n",
      "p");
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].number("requests_per_s"), 0.4);
  EXPECT_EQ(rows[0].number("output_tokens_per_s"), 8);
}

TEST(Readers, ATableOfANewerHarnessAndAScoreOfWhichLessIsBetter) {
  const auto rows = read_pasted(
      "hf ({'pretrained': 'org/m', 'dtype': 'auto'}), gen_kwargs: ({}), limit: None\n"
      "| Groups |Version|Filter|n-shot|Metric|   |Value |   |Stderr|\n"
      "|--------|------:|------|-----:|------|---|-----:|---|-----:|\n"
      "|wikitext|      2|none  |     0|bits_per_byte|↓  |0.7|±  |   N/A|\n",
      "p");
  EXPECT_EQ(rows[0].model, "org/m");
  EXPECT_TRUE(rows[0].lower_is_better);
}

}  // namespace
}  // namespace moegauge
