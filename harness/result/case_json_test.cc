#include "harness/result/case_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "harness/result/json_fields.h"
#include "harness/result/record_testing.h"
#include "harness/result/result_io.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

CaseRecord read(const std::string& line) { return case_from_json(Json::parse(line), "r.json:7"); }

TEST(CaseLine, HasEveryFieldOfAMeasuredCaseInTheOrderOfTheFormat) {
  EXPECT_EQ(
      case_to_line(test_measured()),
      R"({"id":"fused_moe/qwen3-30b-a3b/fp8_block/tp4.ep1/auto/tuned/uniform/gaussian/cold_weights/graph/M=16",)"
      R"("op":"fused_moe","model":"qwen3-30b-a3b","scheme":"fp8_block","tp":4,"ep":1,"backend":"auto",)"
      R"("routing":"uniform","inputs":"gaussian","cache":"cold_weights","launch":"graph","tokens":16,)"
      R"("config":{"asked":"tuned","source":"tuned","file":"kernels/cpu/configs/E=128,N=192,device_name=x.json",)"
      R"("key":16,"values":{"BLOCK_SIZE_M":16,"num_threads":2},"hash":"0123456789abcdef",)"
      R"("stale":["compiler: file has \"12\", this run \"13\""]},"executed_backend":"cpu",)"
      R"("seed":18446744073709551615,"status":"ok",)"
      R"("latency_us":{"median":120.5,"ci_low":120.0,"ci_high":121.0,"p10":119.0,"p90":125.0,"min":118.25,)"
      R"("max":130.0,"mean":121.25,"samples":[118.25,120.5,125.0]},)"
      R"("error":{"implementation":{"relative_l2":0.0005,"worst_token":0.002,"worst_token_row":3,)"
      R"("max_scaled":0.001,"cosine":0.999,"matched":0.75,"non_finite":0,"first_bad":6144},)"
      R"("quantization":{"relative_l2":0.0625,"worst_token":0.0,"worst_token_row":-1,"max_scaled":0.0,)"
      R"("cosine":1.0,"matched":1.0,"non_finite":0,"first_bad":null},)"
      R"("total":{"relative_l2":0.0626,"worst_token":0.0,"worst_token_row":-1,"max_scaled":0.0,"cosine":1.0,)"
      R"("matched":1.0,"non_finite":0,"first_bad":null},)"
      R"("quantization_of":"weights and activations before quantisation"},"executed_scheme":"fp8_block",)"
      R"("numerics":{"gemm1_out":"fp32","act_out":"activation_dtype","pair_out":"fp32",)"
      R"("weight_on_input":"gemm1","accumulate":"reduced"},"checked":{"tokens":16,"rows":16},)"
      R"("tflops":0.5,"gbytes_per_s":12.5,)"
      R"("roofline":{"floor_us":90.25,"floor_with_intermediates_us":95.0,"fraction":0.749},)"
      R"("sampling":{"rounds":3,"extrapolated":true},"stages_us":{"gemm1":60.5,"quantize":2.0},)"
      R"("telemetry":{"clock_mhz":[2900,2800]},"unstable":true,"suspect":true,)"
      R"("suspect_reason":"faster than the floor","device":"cpu/avx512/2",)"
      R"("repro":"moegauge run suites/quick.json --filter '*'","attempts":["crashed: signal 11"]})");
}

TEST(CaseLine, HasRoundingsOfFewKernelsOnlyWhereTheyAre) {
  CaseRecord record = test_measured();
  EXPECT_EQ(case_to_line(record).find("gemm2_out"), std::string::npos);
  EXPECT_EQ(case_to_line(record).find(R"("numerics":{"weights")"), std::string::npos);
  std::get<Measured>(record.outcome).check.numerics.weights = Precision::activation_dtype;
  std::get<Measured>(record.outcome).check.numerics.gemm2_out = Precision::activation_dtype;
  const std::string line = case_to_line(record);
  EXPECT_NE(line.find(R"("gemm2_out":"activation_dtype","pair_out")"), std::string::npos) << line;
  EXPECT_NE(line.find(R"("numerics":{"weights":"activation_dtype","gemm1_out")"),
            std::string::npos);
  EXPECT_EQ(read(line).measured()->check.numerics, record.measured()->check.numerics);
}

TEST(CaseLine, ComesBackAsItWas) {
  const CaseRecord record = read(case_to_line(test_measured()));
  EXPECT_EQ(case_to_line(record), case_to_line(test_measured()));
  EXPECT_EQ(record.coordinates, test_coordinates());
  EXPECT_EQ(record.seed, 18446744073709551615u);
  ASSERT_NE(record.measured(), nullptr);
  EXPECT_EQ(record.measured()->latency.samples, (std::vector<double>{118.25, 120.5, 125}));
  EXPECT_EQ(record.measured()->check.numerics, test_check().numerics);
  EXPECT_EQ(record.measured()->check.error.implementation.first_bad, 6144);
  EXPECT_EQ(record.config.key, 16);
  EXPECT_TRUE(record.unknown.is_null());
}

TEST(CaseLine, HoldsEveryStatusWithItsReasonAndNoLatency) {
  for (const auto status : {Status::inaccurate, Status::unsupported, Status::refused_config,
                            Status::crashed, Status::timeout, Status::out_of_memory,
                            Status::infrastructure, Status::error, Status::skipped}) {
    CaseRecord record = test_unmeasured(status, "because");
    if (status == Status::inaccurate) std::get<Unmeasured>(record.outcome).check = test_check();
    const std::string line = case_to_line(record);
    EXPECT_NE(
        line.find("\"status\":\"" + std::string(to_string(status)) + "\",\"reason\":\"because\""),
        std::string::npos);
    EXPECT_EQ(line.find("latency_us"), std::string::npos);
    EXPECT_EQ(line.find("\"error\":{") != std::string::npos, status == Status::inaccurate);
    const CaseRecord back = read(line);
    EXPECT_EQ(back.status(), status);
    EXPECT_EQ(case_to_line(back), line);
  }
}

TEST(CaseLine, KeepsInlineConfigsAsObjects) {
  CaseRecord record = test_unmeasured(Status::skipped, "budget");
  record.coordinates.config = R"({"BLOCK_SIZE_M":16,"num_threads":2})";
  const std::string line = case_to_line(record);
  EXPECT_NE(
      line.find(
          R"("config":{"asked":{"BLOCK_SIZE_M":16,"num_threads":2},"source":"inline","values":{}})"),
      std::string::npos)
      << line;
  EXPECT_EQ(read(line).coordinates, record.coordinates);
}

TEST(CaseLine, IsOneLineOfAsciiWhateverTheNamesHold) {
  CaseRecord record = test_measured();
  // A quote, a backslash, control characters, a line separator that some readers break lines at, an
  // astral character.
  record.coordinates.model = "a\"b\\c\n\r\t\x01\x7f/\xE2\x80\xA8\xF0\x9F\x98\x80";
  record.repro = record.coordinates.model;
  record.device = "</script>";
  const std::string line = case_to_line(record);
  for (const char c : line) ASSERT_TRUE(c >= 0x20 && c <= 0x7E) << line;
  const CaseRecord back = read(line);
  EXPECT_EQ(back.coordinates, record.coordinates);
  EXPECT_EQ(back.repro, record.repro);
  EXPECT_EQ(case_to_line(back), line);
}

TEST(CaseLine, ReplacesBytesThatAreNotUtf8Visibly) {
  CaseRecord record = test_unmeasured(Status::error, "bad \xff\xC3( name");
  const std::string line = case_to_line(record);
  EXPECT_NE(line.find(R"(bad \ufffd\ufffd( name)"), std::string::npos) << line;
  EXPECT_EQ(std::get<Unmeasured>(read(line).outcome).reason, "bad \xEF\xBF\xBD\xEF\xBF\xBD( name");
}

TEST(CaseLine, WritesAnErrorThatIsNoNumberAsNullWithTheReason) {
  CaseRecord record = test_unmeasured(Status::inaccurate, "error is infinite");
  CheckResult check = test_check();
  check.error.total.relative_l2 = infinity;
  check.error.total.worst_token = infinity;
  check.error.total.cosine = std::numeric_limits<double>::quiet_NaN();
  std::get<Unmeasured>(record.outcome).check = check;
  const std::string line = case_to_line(record);
  EXPECT_NE(
      line.find(
          R"("total":{"relative_l2":null,"worst_token":null,"worst_token_row":-1,"max_scaled":0.0,)"
          R"("cosine":null,"matched":1.0,"non_finite":0,"first_bad":null,)"
          R"("reason":{"relative_l2":"infinite: the reference is zero where the output is not",)"
          R"("worst_token":"infinite: the reference is zero where the output is not",)"
          R"("cosine":"not a number"}})"),
      std::string::npos)
      << line;
  const CaseRecord back = read(line);
  const auto& total = std::get<Unmeasured>(back.outcome).check->error.total;
  EXPECT_EQ(total.relative_l2, infinity);
  EXPECT_EQ(total.worst_token, infinity);
  EXPECT_TRUE(std::isnan(total.cosine));
  EXPECT_EQ(case_to_line(back), line);
}

TEST(CaseLine, RefusesToWriteContradictions) {
  const auto with = [](const std::function<void(Measured&)>& change) {
    CaseRecord record = test_measured();
    change(std::get<Measured>(record.outcome));
    return record;
  };
  EXPECT_THROW(case_to_line(with([](auto& m) { m.latency.median = NAN; })), std::invalid_argument);
  EXPECT_THROW(case_to_line(with([](auto& m) { m.latency.samples.push_back(infinity); })),
               std::invalid_argument);
  EXPECT_THROW(case_to_line(with([](auto& m) { m.roofline.fraction = NAN; })),
               std::invalid_argument);
  EXPECT_THROW(case_to_line(test_unmeasured(Status::ok, "?")), std::invalid_argument);
  EXPECT_THROW(case_to_line(test_unmeasured(Status::error, "")), std::invalid_argument);
}

TEST(CaseLine, KeepsFieldsOfANewerVersionAtAnyDepth) {
  Json json = Json::parse(case_to_line(test_measured()));
  json["energy_j"] = 1.5;
  json["latency_us"]["mode"] = "median";
  json["error"]["total"]["ulp"] = {{"max", 3}};
  const CaseRecord record = case_from_json(json, "r.json");
  EXPECT_EQ(
      record.unknown.dump(),
      R"({"latency_us":{"mode":"median"},"error":{"total":{"ulp":{"max":3}}},"energy_j":1.5})");
  EXPECT_EQ(nlohmann::json::parse(case_to_line(record)), nlohmann::json(json));
}

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

TEST(CaseFromJson, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(refusal([](Json&) {}), "accepted");
  EXPECT_EQ(refusal([](Json& j) { j.erase("device"); }),
            "r.json:7: the key \"device\" is missing; add it");
  EXPECT_EQ(refusal([](Json& j) { j["status"] = "okay"; }),
            "r.json:7: /status: unknown status \"okay\"; known: ok, inaccurate, unsupported, "
            "refused_config, crashed, timeout, out_of_memory, infrastructure, error, skipped");
  EXPECT_EQ(refusal([](Json& j) { j["tokens"] = 17; }),
            "r.json:7: /id: the id "
            "\"fused_moe/qwen3-30b-a3b/fp8_block/tp4.ep1/auto/tuned/uniform/gaussian/cold_weights/"
            "graph/M=16\" does not belong to the case's coordinates; they spell "
            "\"fused_moe/qwen3-30b-a3b/fp8_block/tp4.ep1/auto/tuned/uniform/gaussian/cold_weights/"
            "graph/M=17\"");
  EXPECT_EQ(refusal([](Json& j) { j.erase("latency_us"); }),
            "r.json:7: the key \"latency_us\" is missing; add it");
  EXPECT_EQ(refusal([](Json& j) { j["latency_us"]["median"] = -1; }),
            "r.json:7: /latency_us/median: -1 is out of range; write a number of at least 0.0");
  EXPECT_EQ(refusal([](Json& j) { j["latency_us"]["median"] = nullptr; }),
            "r.json:7: /latency_us/median: found null; a number of at least 0.0 is expected");
  EXPECT_EQ(refusal([](Json& j) { j["error"]["total"]["relative_l2"] = nullptr; }),
            "r.json:7: /error/total/relative_l2: null without a reason; say in \"reason\" why it "
            "is no number");
  EXPECT_EQ(
      refusal([](Json& j) { j["status"] = "crashed"; }),
      "r.json:7: /latency_us: a latency in a case that is crashed; only an ok case has a latency");
  EXPECT_EQ(refusal([](Json& j) { j.erase("reason"); }, test_unmeasured(Status::timeout, "60 s")),
            "r.json:7: the key \"reason\" is missing; add it");
  EXPECT_EQ(refusal([](Json& j) { j["numerics"]["accumulate"] = "fp16"; }),
            "r.json:7: /numerics/accumulate: unknown accumulation \"fp16\"; known: fp32, reduced");
}

}  // namespace
}  // namespace moegauge
