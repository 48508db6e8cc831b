// A result that says what cannot be: refused at the number, before anything is judged by it.
#include "harness/result/contradictions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/result/record_testing.h"
#include "harness/result/result_io.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

using Json = nlohmann::ordered_json;
using testing::EndsWith;
using testing::HasSubstr;

// test_measured(): min 118.25, p10 119, ci_low 120, median 120.5, ci_high 121, mean 121.25, p90
// 125, max 130; samples 118.25, 120.5, 125.
std::string refusal(const std::function<void(Json&)>& change,
                    const CaseRecord& record = test_measured()) {
  Json json = Json::parse(case_to_line(record));
  change(json);
  try {
    case_from_json(json, "r.json:7");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::string with_latency(const char* key, const Json& value) {
  return refusal([&](Json& j) { j["latency_us"][key] = value; });
}

TEST(Contradictions, AnIntervalHoldsItsMedian) {
  EXPECT_EQ(with_latency("ci_low", 120.6),
            "r.json:7: /latency_us/ci_low: ci_low is above median, 120.5; ci_low <= median is "
            "expected");
  EXPECT_THAT(with_latency("ci_high", 120.4), HasSubstr("median is above ci_high, 120.4"));
  EXPECT_EQ(with_latency("ci_low", 120.5), "accepted");
}

TEST(Contradictions, QuantilesAreInOrder) {
  EXPECT_THAT(with_latency("min", 119.5), HasSubstr("/latency_us/min: min is above p10, 119.0"));
  EXPECT_THAT(with_latency("p10", 121), HasSubstr("p10 is above median"));
  EXPECT_THAT(with_latency("p90", 120), HasSubstr("median is above p90"));
  EXPECT_THAT(with_latency("max", 124), HasSubstr("p90 is above max"));
  EXPECT_THAT(with_latency("mean", 131), HasSubstr("mean is above max"));
  EXPECT_THAT(with_latency("mean", 1), HasSubstr("min is above mean"));
}

TEST(Contradictions, SamplesLieBetweenMinAndMax) {
  EXPECT_THAT(with_latency("samples", Json::array({118.25, 60, 125})),
              HasSubstr("/latency_us/samples/1: a sample that is not from min to max"));
  EXPECT_THAT(with_latency("samples", Json::array({118.25, 131})),
              HasSubstr("/latency_us/samples/1: "));
  EXPECT_EQ(with_latency("samples", Json::array()), "accepted") << "none were kept";
}

TEST(Contradictions, NumbersAreNumbersAndNotNegative) {
  for (const Json& value : {Json("NaN"), Json("120.5"), Json(), Json(-1), Json(true)}) {
    EXPECT_THAT(with_latency("median", value), HasSubstr("/latency_us/median: ")) << value;
    EXPECT_THAT(with_latency("samples", Json::array({value})), HasSubstr("/latency_us/samples/0: "))
        << value;
  }
  for (const char* key : {"tflops", "gbytes_per_s"}) {
    EXPECT_THAT(refusal([&](Json& j) { j[key] = -0.5; }), HasSubstr(key));
  }
}

TEST(Contradictions, ErrorsAreSizes) {
  const auto with_error = [](const char* key, const Json& value) {
    return refusal([&](Json& j) { j["error"]["implementation"][key] = value; });
  };
  for (const char* key : {"relative_l2", "worst_token", "max_scaled"}) {
    EXPECT_EQ(with_error(key, -0.001), std::string("r.json:7: /error/implementation/") + key +
                                           ": a negative error; an error is at least 0");
    EXPECT_THAT(with_error(key, "NaN"), HasSubstr("found the string \"NaN\""));
  }
  EXPECT_THAT(with_error("cosine", 1.5), HasSubstr("a cosine is from -1 to 1"));
  EXPECT_THAT(with_error("matched", 1.5), HasSubstr("the matched fraction is from 0 to 1"));
  EXPECT_THAT(with_error("non_finite", -1), HasSubstr("out of range"));
  EXPECT_THAT(refusal([](Json& j) {
                j["error"]["total"]["relative_l2"] = nullptr;
                j["error"]["total"]["reason"]["relative_l2"] = "minus infinite";
              }),
              HasSubstr("a negative error"));
  EXPECT_THAT(refusal([](Json& j) {
                j["error"]["total"]["relative_l2"] = nullptr;
                j["error"]["total"]["reason"]["relative_l2"] = "huge";
              }),
              HasSubstr("\"huge\" does not say which value null stands for; infinite, "));
}

TEST(Contradictions, NoMoreRowsAreComputedThanCompared) {
  EXPECT_THAT(refusal([](Json& j) { j["checked"]["rows"] = 15; }),
              EndsWith("/checked/tokens: more distinct rows than were compared; tokens <= rows is "
                       "expected"));
}

TEST(Contradictions, OnlyAnOkCaseIsMeasuredAndOnlyItHasNoReason) {
  EXPECT_THAT(refusal([](Json& j) { j["reason"] = "?"; }),
              HasSubstr("/reason: a reason in a case that is ok"));
  const CaseRecord skipped = test_unmeasured(Status::skipped, "no tuned file");
  EXPECT_THAT(refusal([](Json& j) { j["tflops"] = 1; }, skipped),
              HasSubstr("/tflops: a measurement in a case that is skipped"));
  EXPECT_THAT(refusal([](Json& j) { j["status"] = "ok"; }, skipped), HasSubstr("/reason: "));
  EXPECT_THAT(refusal(
                  [](Json& j) {
                    j["status"] = "ok";
                    j.erase("reason");
                  },
                  skipped),
              HasSubstr("the key \"latency_us\" is missing"));
}

TEST(AbsentBackends, ComeBack) {
  CaseRecord record = test_unmeasured(Status::unsupported, "gpu: no driver");
  std::get<Unmeasured>(record.outcome).absent_backends = {"gpu"};
  const CaseRecord back = case_from_json(Json::parse(case_to_line(record)), "r.json");
  EXPECT_EQ(std::get<Unmeasured>(back.outcome).absent_backends, std::vector<std::string>{"gpu"});
}

// Of a whole file with two ok cases, three samples each.
std::string file_refusal(const std::function<void(Json&)>& change) {
  const auto file =
      test_folder() / ("moegauge_contradictions_" + std::to_string(::getpid()) + ".json");
  Result result;
  result.cases = {test_measured(1), test_measured(16)};
  result.comparisons = {Comparison{
      .point = "p", .a = "a", .b = "b", .ratio = 1.1, .ci_low = 1, .ci_high = 1.2, .pairs = 9}};
  write_result(file, result);
  Json json = Json::parse(std::ifstream(file));
  std::filesystem::remove(file);
  change(json);
  try {
    read_result(json.dump(), "r.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Contradictions, RowsForOtherToolsAreAsManyAsSamples) {
  EXPECT_EQ(file_refusal([](Json&) {}), "accepted");
  EXPECT_THAT(file_refusal([](Json& j) { j["benchmarks"].erase(0); }),
              HasSubstr("/benchmarks: 2 rows of "));
  EXPECT_THAT(file_refusal([](Json& j) { j["benchmarks"].push_back(j["benchmarks"][0]); }),
              HasSubstr("/name: more rows of "));
  EXPECT_THAT(file_refusal([](Json& j) { j["benchmarks"][0]["name"] = "other"; }),
              HasSubstr("/benchmarks/0/name: a row of \"other\", which is no ok case"));
}

TEST(Contradictions, ARatioLiesInItsInterval) {
  EXPECT_THAT(file_refusal([](Json& j) { j["comparisons"][0]["ci_low"] = 1.15; }),
              HasSubstr("/comparisons/0/ci_low: ci_low is above ratio, 1.1"));
  EXPECT_THAT(file_refusal([](Json& j) { j["comparisons"][0]["ci_high"] = 1.05; }),
              HasSubstr("ratio is above ci_high"));
}

}  // namespace
}  // namespace moegauge
