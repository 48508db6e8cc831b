// The commands that read files, from the command line to the exit code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/commands/command_line_testing.h"
#include "reference/base/text_file.h"

namespace moegauge {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST_F(CommandLine, GateOfAFileAgainstItselfExitsWith0) {
  EXPECT_EQ(gate("r.json", "r.json"), 0);
  EXPECT_THAT(out_, HasSubstr("PASS: 3 cases\n"));
  EXPECT_THAT(err_, IsEmpty());
}

TEST_F(CommandLine, GateAgainstHalvedLatenciesExitsWith1AndNamesTheCases) {
  Result halved = model_result_;
  for (CaseRecord& record : halved.cases) scale_latency(record, 0.5);
  write("halved.json", halved);
  EXPECT_EQ(gate("r.json", "halved.json"), 1);
  for (const CaseRecord& record : model_result_.cases) {
    EXPECT_THAT(out_, HasSubstr("fail: " + record.id() + "\n    slower: "));
  }
  EXPECT_THAT(out_, HasSubstr("FAIL: 3 of 3 cases\n"));
}

TEST_F(CommandLine, GateWithoutABaselineFileExitsWith4) {
  EXPECT_EQ(gate("r.json", "missing.json"), 4);
  EXPECT_THAT(err_, HasSubstr("missing.json: no such baseline, so no verdict; record one with"));
}

TEST_F(CommandLine, GateWithoutAResultFileExitsWith2) {
  EXPECT_EQ(gate("missing.json", "r.json"), 2);
}

TEST_F(CommandLine, GateOnABaselineThatIsNoJsonExitsWith2) {
  std::ofstream(path("broken.json")) << "latency: fast\n";
  EXPECT_EQ(gate("r.json", "broken.json"), 2);
  EXPECT_THAT(err_, HasSubstr("broken.json"));
}

TEST_F(CommandLine, GateJudgesSeveralFilesAsProcesses) {
  std::vector<std::string> words = {"gate"};
  for (const bool baseline : {false, true}) {
    if (baseline) words.push_back("--baseline");
    for (int i = 0; i < 5; ++i) {
      Result process = model_result_;
      for (CaseRecord& record : process.cases) {
        scale_latency(record, (baseline ? 1 : 1.1) * (1 + 0.002 * i + (baseline ? 0.0001 : 0)));
      }
      const std::string name = (baseline ? "b" : "n") + std::to_string(i) + ".json";
      write(name, process);
      words.push_back(path(name));
    }
  }
  EXPECT_EQ(run(words), 1);
  EXPECT_THAT(out_, HasSubstr("5 processes against 5"));
  words.push_back(path("b1.json"));
  EXPECT_EQ(run(words), 2);
  EXPECT_THAT(err_, HasSubstr("the same measurements as"));
}

// At 0 tokens nothing is launched: that every process took 0 us for it says nothing of the rest.
TEST_F(CommandLine, GateTellsProcessesApartThatAgreeInOneCase) {
  std::vector<std::string> words = {"gate"};
  for (int i = 0; i < 3; ++i) {
    Result process = model_result_;
    for (CaseRecord& record : process.cases) scale_latency(record, 1 + 0.002 * i);
    scale_latency(process.cases[0], 0);
    if (i == 2) words.push_back("--baseline");
    const std::string name = "p" + std::to_string(i) + ".json";
    write(name, process);
    words.push_back(path(name));
  }
  EXPECT_NE(run(words), 2) << err_;
  EXPECT_THAT(out_, HasSubstr("p0.json and 1 more against"));
  words.insert(words.begin() + 1, path("p0.json"));
  EXPECT_EQ(run(words), 2);
  EXPECT_THAT(err_, HasSubstr("the same measurements as"));
}

TEST_F(CommandLine, GateReadsACalibration) {
  std::string text = "{\"schema\": \"moegauge.calibration/1\", \"devices\": [{\"device\": \"" +
                     model_result_.cases[0].device + "\", \"cases\": [";
  for (const CaseRecord& record : model_result_.cases) {
    text += std::string(record.id() == model_result_.cases[0].id() ? "" : ",") + "{\"id\": \"" +
            record.id() + "\", \"between\": 0.002, \"within\": 0.001, \"processes\": 12}";
  }
  write_text("c.json", text + "]}]}");
  EXPECT_EQ(gate("r.json", "r.json", {"--calibration", path("c.json"), "--explain", "*M=1"}), 0);
  EXPECT_THAT(out_, HasSubstr("calibration of 12 processes"));
  EXPECT_EQ(gate("r.json", "r.json", {"--calibration", path("r.json")}), 2);
}

TEST_F(CommandLine, GateWithAFilterThatMatchesNothingExitsWith4) {
  EXPECT_EQ(gate("r.json", "r.json", {"--filter", "nothing*"}), 4);
  EXPECT_THAT(out_, HasSubstr("NO VERDICT: no case matched"));
}

TEST_F(CommandLine, GateOfARenamedCaseExitsWith4) {
  Result renamed = model_result_;
  renamed.cases[0].coordinates.routing = "balanced";
  write("renamed.json", renamed);
  EXPECT_EQ(gate("renamed.json", "r.json"), 4);
  EXPECT_THAT(out_, HasSubstr("if it is now " + renamed.cases[0].id()));
}

// What a result says of its layers is enough: its models may lie on another machine.
TEST_F(CommandLine, GateOfACaseRenamedByModelOrSchemeExitsWith4) {
  for (auto rename : {+[](CaseCoordinates& c) { c.model = "another"; },
                      +[](CaseCoordinates& c) { c.scheme = "fp9"; }}) {
    Result renamed = model_result_;
    for (CaseRecord& record : renamed.cases) rename(record.coordinates);
    write("renamed.json", renamed);
    EXPECT_EQ(gate("renamed.json", "r.json"), 4) << err_;
    EXPECT_EQ(gate("r.json", "renamed.json"), 4) << err_;
  }
  Result moved = model_result_;
  for (CaseRecord& record : moved.cases) record.coordinates.model = "/another/machine/config.json";
  write("moved.json", moved);
  EXPECT_EQ(gate("moved.json", "moved.json"), 0) << err_;
}

TEST_F(CommandLine, GateOfAnotherLayerUnderTheSameNameIsNoVerdict) {
  Result other = model_result_;
  for (CaseRecord& record : other.cases) {
    std::get<Measured>(record.outcome).check.layer->hidden_size /= 2;
  }
  write("other.json", other);
  EXPECT_EQ(gate("other.json", "r.json"), 4);
  EXPECT_THAT(out_, HasSubstr("the layer is E=8"));
}

TEST_F(CommandLine, GateOnACutBaselineSaysWhereItStoppedAndExitsWith4) {
  const std::string text = read_text_file(path("r.json"));
  std::ofstream(path("cut.json")) << text.substr(0, text.find("M=256") - 300);
  EXPECT_EQ(gate("r.json", "cut.json"), 4);
  // What both lost could have failed: the whole cases' passes are no pass of the file.
  EXPECT_EQ(gate("cut.json", "cut.json"), 4);
  EXPECT_THAT(out_, HasSubstr("NO VERDICT: "));
  EXPECT_THAT(out_, HasSubstr("cut.json: cut at "));
  EXPECT_THAT(err_, AllOf(HasSubstr("warning: "), HasSubstr("cut.json: cut at ")));
}

// Its name is the same; a driver or power cap that is not makes its latencies others.
TEST_F(CommandLine, GateHasNoVerdictAcrossDeviceFactsThatBothSidesTell) {
  const auto with = [&](const std::string& name, const std::string& facts) {
    Result result = model_result_;
    const std::string device = result.cases[0].device;
    result.context.emplace_back("device." + device.substr(0, device.find('/')), facts);
    write(name, result);
  };
  with("old.json", "driver 570, power cap 700 W");
  with("new.json", "driver 575, power cap 350 W");
  EXPECT_EQ(gate("new.json", "old.json"), 4);
  EXPECT_THAT(out_, AllOf(HasSubstr("driver 570"), HasSubstr("driver 575")));
  EXPECT_EQ(gate("new.json", "new.json"), 0);
  EXPECT_EQ(gate("new.json", "r.json"), 0) << "which tells none";
}

// A busy machine is the commonest reason for a slow-down that nobody finds a cause for.
TEST_F(CommandLine, GateSaysWhichSideWasMeasuredBesideOtherWork) {
  Result busy = model_result_;
  busy.context.emplace_back("disturbed", "other processes kept 1.7 of 2 processors busy");
  write("busy.json", busy);
  gate("busy.json", "r.json");
  EXPECT_THAT(err_,
              HasSubstr("busy.json was disturbed when it was measured: other processes kept"));
  gate("r.json", "r.json");
  EXPECT_EQ(err_, "");
}

TEST_F(CommandLine, GateWritesItsReportsBesideTheText) {
  EXPECT_EQ(gate("r.json", "r.json", {"--markdown", path("g.md"), "--junit", path("g.xml")}), 0);
  EXPECT_THAT(read_text_file(path("g.md")), HasSubstr("**PASS: 3 cases**"));
  EXPECT_THAT(read_text_file(path("g.xml")), HasSubstr("<testsuites tests=\"3\""));
}

TEST_F(CommandLine, GatePrintsJsonThatHoldsTheExitCode) {
  EXPECT_EQ(gate("r.json", "r.json", {"--json"}), 0);
  EXPECT_EQ(nlohmann::json::parse(out_)["exit_code"], 0);
}

TEST_F(CommandLine, GatePrintsOneJsonDocumentWhateverElseIsAsked) {
  Result halved = model_result_;
  for (CaseRecord& record : halved.cases) scale_latency(record, 0.5);
  write("halved.json", halved);
  EXPECT_EQ(gate("r.json", "halved.json", {"--json", "--explain", "*", "--github"}), 1);
  EXPECT_EQ(nlohmann::json::parse(out_)["exit_code"], 1);
  EXPECT_THAT(err_, AllOf(HasSubstr("::error "), HasSubstr("standard error within")));
}

TEST_F(CommandLine, GateExplainsOneVerdict) {
  EXPECT_EQ(gate("r.json", "r.json", {"--explain", "*/M=16"}), 0);
  EXPECT_THAT(out_, AllOf(HasSubstr("M=16\nverdict: pass\n"), HasSubstr("standard error within"),
                          Not(HasSubstr("M=256"))));
  EXPECT_EQ(gate("r.json", "r.json", {"--explain", "nothing"}), 4);
}

TEST_F(CommandLine, GateUnderAnUnknownPolicyExitsWith2AndNamesTheNearest) {
  EXPECT_EQ(gate("r.json", "r.json", {"--policy", "defualt"}), 2);
  EXPECT_THAT(err_, HasSubstr("did you mean \"default\"?"));
}

// The day on which this runs lies between.
TEST_F(CommandLine, GateExcusesAKnownIssueUntilItExpires) {
  Result slower = model_result_;
  scale_latency(slower.cases[1], 1.5);
  write("slower.json", slower);
  const auto judged_until = [&](const std::string& expires) {
    std::string policy = read_text_file("suites/policies/pull-request.json");
    policy.insert(policy.find("\"latency\""),
                  R"("known_issues": [{"case": "*/M=16", "reason": "driver", "expires": ")" +
                      expires + "\"}],\n");
    return gate("slower.json", "r.json", {"--policy", write_text("p.json", policy)});
  };
  EXPECT_EQ(judged_until("9999-12-31"), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("known until 9999-12-31 (driver)"));
  EXPECT_EQ(judged_until("2020-02-29"), 1);
  EXPECT_THAT(out_, HasSubstr("expired on 2020-02-29"));
  EXPECT_EQ(judged_until("2021-02-29"), 2) << "no leap year";
}

TEST_F(CommandLine, ControlsThatBecameFasterFail) {
  Result faster = model_result_;
  for (CaseRecord& record : faster.cases) scale_latency(record, 0.7);
  write("faster.json", faster);
  EXPECT_EQ(gate("faster.json", "r.json"), 0);
  EXPECT_EQ(gate("faster.json", "r.json", {"--policy", "must-not-change"}), 1);
}

TEST_F(CommandLine, CompareShowsTheRatioAndExitsWith0) {
  Result slower = model_result_;
  scale_latency(slower.cases[0], 1.5);
  write("slower.json", slower);
  EXPECT_EQ(run({"compare", path("r.json"), path("slower.json")}), 0);
  EXPECT_THAT(out_, HasSubstr("slower  100.0 us  150.0 us  1.500x"));
}

TEST_F(CommandLine, CompareWithoutACommonCaseExitsWith4) {
  EXPECT_EQ(run({"compare", path("r.json"), path("r.json"), "--filter", "nothing"}), 4);
}

TEST_F(CommandLine, ListShowsBackendsWithWhyTheyAreAbsent) {
  backends_ = {&serving, &absent};
  EXPECT_EQ(run({"list", "backends"}), 0);
  EXPECT_THAT(out_, AllOf(HasSubstr("serving  yes        Fake    fake silicon"),
                          HasSubstr("absent   no         -       no driver")));
}

TEST_F(CommandLine, ListShowsEveryShippedKind) {
  for (const char* kind : {"schemes", "models", "suites", "policies"}) {
    EXPECT_EQ(run({"list", kind}), 0) << kind << err_;
    EXPECT_EQ(run({"list", kind, "--json"}), 0);
    EXPECT_FALSE(nlohmann::json::parse(out_).empty()) << kind;
  }
  EXPECT_EQ(run({"list", "models"}), 0);
  EXPECT_THAT(out_, HasSubstr("qwen3-30b-a3b"));
}

TEST_F(CommandLine, TheTopLevelHelpNamesEveryKindOfList) {
  EXPECT_EQ(run({"--help"}), 0);
  for (const char* kind : {"backends", "schemes", "models", "suites", "configs", "policies", "ops"})
    EXPECT_THAT(out_, HasSubstr(kind));
}

TEST_F(CommandLine, ListOfNothingExitsWith4AndOfAnUnknownKindWith2) {
  EXPECT_EQ(run({"list", "configs"}), 4);  // the fake backend has none
  EXPECT_EQ(run({"list", "planets"}), 2);
}

TEST_F(CommandLine, ExplainShowsEveryBackendInOrder) {
  backends_ = {&absent, &refusing, &serving, &also_serving};
  EXPECT_EQ(run({"explain", "qwen3-30b-a3b", "--scheme", "bf16", "--tokens", "16"}), 0);
  EXPECT_EQ(
      out_,
      "E=128 (128 local) top_k=8 K=2048 N=768 scheme=bf16 M=16\n"
      "bf16 activations, silu_and_mul\n\n"
      "absent        absent            no driver; install the driver\n"
      "refusing      refuses           shape: N = 768 is no multiple of 512; 512 and 1024 are "
      "served\n"
      "serving       chosen            fake silicon\n"
      "also-serving  would also serve  fake silicon\n\n"
      "serving: default config only: it has no tuned files\n");
}

TEST_F(CommandLine, ExplainExitsWith4WhereNobodyServesAndSaysWhatWouldHaveToChange) {
  backends_ = {&absent, &refusing};
  EXPECT_EQ(run({"explain", "qwen3-30b-a3b", "--scheme", "bf16"}), 4);
  EXPECT_THAT(out_,
              HasSubstr("nobody serves this layer\n  absent would need: install the driver\n  "
                        "refusing would need: N = 768 is no multiple"));
}

// Absent devices and what their kernels would serve are two questions: --arch asks the second.
TEST_F(CommandLine, ExplainAnswersForAnArchitectureThatIsNotHere) {
  const FakeBackend cuda("cuda", false, std::nullopt), cpu("cpu", true, std::nullopt);
  backends_ = {&cuda, &cpu};
  EXPECT_EQ(run({"explain", "qwen3-30b-a3b", "--scheme", "fp8_block", "--arch", "sm_90"}), 0);
  EXPECT_EQ(out_,
            "E=128 (128 local) top_k=8 K=2048 N=768 scheme=fp8_block M=1\n"
            "bf16 activations, silu_and_mul\n"
            "sm_90: wgmma, waves of 32, FP8 as OCP, no native MX\n\n"
            "cuda  chosen   kernels for sm_90\n"
            "cpu   refuses  instruction_set: this version has no kernels of it for sm_90\n\n"
            "cuda: tuned files are looked up by the device's name\n");
  EXPECT_EQ(run({"explain", "qwen3-30b-a3b", "--scheme", "fp8_block", "--arch", "cpu"}), 0);
  EXPECT_EQ(run({"explain", "qwen3-30b-a3b", "--scheme", "fp8_block", "--arch", "sm_80"}), 4);
}

TEST_F(CommandLine, ExplainSaysWhatAnArchitectureWithoutKernelsWouldNeed) {
  const FakeBackend cuda("cuda", false, std::nullopt), cpu("cpu", true, std::nullopt);
  backends_ = {&cuda, &cpu};
  EXPECT_EQ(run({"explain", "minimax-m3", "--scheme", "mxfp8", "--arch", "gfx940", "--json"}), 4);
  const auto json = nlohmann::json::parse(out_);
  EXPECT_EQ(json["arch"], "gfx94x: MFMA, waves of 64, FP8 as FNUZ, no native MX");
  EXPECT_EQ(json["served"], false);
  EXPECT_EQ(json["backends"][0]["standing"], "refuses");
  EXPECT_EQ(json["would_have_to_change"][0],
            "gfx94x would need kernels in the hip backend; this version has none");
  EXPECT_EQ(
      json["would_have_to_change"][1],
      "gfx94x: it has no MX matrix instructions; convert the weights: moegauge convert IN OUT "
      "--to fp8_block --flavor fnuz");
  for (const char* tp_ep : {"--tp", "--ep"}) {
    EXPECT_EQ(run({"explain", "minimax-m3", "--scheme", "mxfp8", "--arch", "gfx942", tp_ep, "4"}),
              4);
    EXPECT_THAT(out_, AllOf(HasSubstr("--to fp8_block --flavor fnuz"),
                            HasSubstr("swiglu_clamped(alpha 1.702, beta 1, limit 7)")));
  }
}

TEST_F(CommandLine, ExplainSaysHowFarTheKernelsOfAnArchitectureWereProven) {
  const FakeBackend hip("hip", false, std::nullopt);
  backends_ = {&hip};
  for (const char* arch : {"gfx942", "gfx950", "gfx1201"}) {
    EXPECT_EQ(run({"explain", "qwen3-30b-a3b", "--scheme", "fp8_block", "--arch", arch}), 0);
    EXPECT_THAT(out_, HasSubstr(std::string("kernels for ") + arch +
                                ", compiled and emulated on the CPU, never yet run"));
  }
}

TEST_F(CommandLine, ExplainOfAnUnknownArchitectureOrDtypeExitsWith2) {
  EXPECT_EQ(run({"explain", "qwen3-30b-a3b", "--scheme", "bf16", "--arch", "gfx9421"}), 2);
  EXPECT_THAT(err_, HasSubstr("no family of devices is called \"gfx9421\""));
  EXPECT_EQ(run({"explain", "qwen3-30b-a3b", "--scheme", "bf16", "--dtype", "fp16"}), 2);
  EXPECT_THAT(err_, HasSubstr("--dtype: bf16 has no activations in fp16; bf16"));
  EXPECT_EQ(run({"explain", "qwen3-30b-a3b", "--scheme", "bf16", "--activation", "relu"}), 2);
}

TEST_F(CommandLine, ExplainOfAnUnknownModelOrSchemeExitsWith2) {
  EXPECT_EQ(run({"explain", "qwen3-30b-a3b", "--scheme", "bf17"}), 2);
  EXPECT_EQ(run({"explain", "no-such-model", "--scheme", "bf16"}), 2);
}

TEST_F(CommandLine, DoctorExitsWith0WhereABackendIsPresent) {
  backends_ = {&serving, &absent};
  EXPECT_EQ(run({"doctor"}), 0);
  EXPECT_THAT(
      out_, AllOf(HasSubstr("backend serving: present, fake silicon\n  device key: Fake/f1/2"),
                  HasSubstr("backend absent: absent, no driver\n  to get it: install the driver")));
}

TEST_F(CommandLine, DoctorMeasuresCeilingsOnRequest) {
  EXPECT_EQ(run({"doctor", "--measure"}), 0);
  EXPECT_THAT(out_, HasSubstr("10.0         50.0"));
}

TEST_F(CommandLine, DoctorExitsWith4WithoutAnyBackend) {
  backends_ = {&absent};
  EXPECT_EQ(run({"doctor"}), 4);
}

TEST_F(CommandLine, EveryCommandExplainsItsExitCodes) {
  for (const char* command : {"gate", "compare", "list", "explain", "doctor"}) {
    EXPECT_EQ(run({command, "--help"}), 0);
    EXPECT_THAT(out_, HasSubstr("xit codes")) << command;
  }
}

}  // namespace
}  // namespace moegauge
