// Input that is wrong: one line that says what would be right, exit code 2, and nothing written.
#include <sys/stat.h>

#include <algorithm>

#include "harness/commands/command_line_testing.h"
#include "reference/base/text_file.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class BadInput : public CommandLine {
 protected:
  // The tiny model of the suites below: 8 experts, N 128.
  void SetUp() override {
    write_text("config.json", R"({"model_type": "mixtral", "num_local_experts": 8,
      "num_experts_per_tok": 2, "hidden_size": 256, "intermediate_size": 128,
      "hidden_act": "silu"})");
  }
  // `fields` begin on line 3 of the file.
  std::string suite(const std::string& fields) {
    return write_text("suite.json",
                      "{\"schema\": \"moegauge.suite/1\", \"name\": \"t\", \"cases\": [\n"
                      "{\"model\": \"config.json\", \"scheme\": \"bf16\", \"tokens\": 1,\n" +
                          fields + "}]}\n");
  }
  // Runs and expects one line that holds `sentence`, and code 2.
  void refuses(const std::vector<std::string>& words, const std::string& sentence) {
    EXPECT_EQ(run(words), 2) << testing::PrintToString(words) << err_;
    EXPECT_THAT(err_, AllOf(StartsWith("moegauge: "), HasSubstr(sentence)));
    EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 1) << err_;
  }
  void refuses_suite(const std::string& fields, const std::string& sentence) {
    refuses({"run", suite(fields), "--out", path("out.json")}, sentence);
    EXPECT_FALSE(fs::exists(path("out.json.journal"))) << "something was started";
  }
};

TEST_F(BadInput, OfAMisspeltCommandNamesTheNearest) {
  refuses({"rnu", "x"}, "unknown command \"rnu\"; did you mean \"run\"?; see moegauge --help");
  refuses({"gaet"}, "did you mean \"gate\"?");
  refuses({"frobnicate"}, "unknown command \"frobnicate\"; known: run, gate, ");
  refuses({}, "A subcommand is required; see moegauge --help");
}

TEST_F(BadInput, OfAMisspeltOptionNamesTheNearestEvenWhereItsRightNameIsMissing) {
  refuses({"run", "quick", "--fliter", "*"},
          "unknown option \"--fliter\"; did you mean \"--filter\"?; see moegauge run --help");
  refuses({"run", "quick", "--fliter=*"}, "did you mean \"--filter\"?");
  refuses({"gate", "r.json", "--basline", "b.json"}, "did you mean \"--baseline\"?");
  refuses({"--verison"}, "did you mean \"--version\"?");
  refuses({"list", "models", "suites"}, "\"suites\" is a word too many; see moegauge list --help");
}

TEST_F(BadInput, OfAnEmptyValueIsNotTakenForNone) {
  for (const char* option : {"--out", "--tokens", "--shard", "--backend", "--iterate", "--device",
                             "--budget", "--timeout"}) {
    refuses({"run", suite(R"("backend": "serving")"), option, ""},
            std::string(option) + ": an empty value");
  }
  refuses({"explain", "qwen3-30b-a3b", "--scheme", ""}, "--scheme: an empty value");
  refuses({"run", ""}, "SUITE: an empty value");
}

TEST_F(BadInput, AnEmptyFilterMatchesNothing) {
  EXPECT_EQ(run({"run", suite(R"("backend": "serving")"), "--filter", ""}), 4);
  EXPECT_EQ(gate("r.json", "r.json", {"--filter", ""}), 4);
  EXPECT_EQ(run({"compare", path("r.json"), path("r.json"), "--filter", ""}), 4);
}

TEST_F(BadInput, AModelForCeilingsThatAreNotMeasuredIsRefused) {
  refuses({"doctor", "--model", "nope"}, "--model requires --measure");
  refuses({"doctor", "--measure", "--model", "nope"}, "no model \"nope\"");
}

TEST_F(BadInput, OfAnUnknownSchemeNamesTheNearestOrItsOptions) {
  refuses({"explain", "qwen3-30b-a3b", "--scheme", "fp8_blok"},
          "moegauge: --scheme: unknown scheme \"fp8_blok\"; did you mean \"fp8_block\"?");
  refuses({"explain", "qwen3-30b-a3b", "--scheme", "bf16_fast"}, "bf16 takes none");
}

TEST_F(BadInput, AConfigKeyThatTheBackendDoesNotKnowIsShownInTheSuite) {
  refuses_suite("\"backend\": \"serving\", \"config\": [\"default\",\n{\"BLOCK_SIZE\": 16}]",
                "suite.json:4: /cases/0/config/1/BLOCK_SIZE: unknown key BLOCK_SIZE; BLOCK_SIZE_M");
}

TEST_F(BadInput, AConfigKeyThatTheBackendDoesNotKnowIsShownInTheFile) {
  write_text("t.json",
             "{\"1\": {\"BLOCK_SIZE_M\": 16},\n\"64\": {\"BLOCK_SIZE_M\": 16,\n\"x\": 1}}");
  refuses_suite(R"("backend": "serving", "config": "file:t.json")",
                "t.json:3: /64/x: unknown key x; BLOCK_SIZE_M");
}

TEST_F(BadInput, AConfigFileThatCannotBeReadIsRefused) {
  refuses_suite(R"("config": "file:none.json")", "suite.json:3: /cases/0/config: no file");
  write_text("t.json", "{\"1\": {\"BLOCK_SIZE_M\": \"16\"}}");
  refuses_suite(R"("config": "file:t.json")", "t.json:1: /1/BLOCK_SIZE_M: found the string");
  write_text("t.json", "{");
  refuses_suite(R"("config": "file:t.json")", "t.json:1:2: the text ends");
  fs::create_directory(path("folder"));
  refuses_suite(R"("config": "file:folder")", "folder: it is a folder");
}

TEST_F(BadInput, AConfigFileOfAnotherLayerIsRefused) {
  const auto named = [&](const std::string& name) {
    write_text(name, "{\"1\": {\"BLOCK_SIZE_M\": 16}}");
    return "\"config\": \"file:" + name + "\"";
  };
  const std::string own = "this one's files are called E=8,N=128,device_name=";
  refuses_suite(named("E=8,N=128,device_name=X,dtype=fp8_w8a8.json"), own);
  refuses_suite(named("E=16,N=128,device_name=X.json"), own);
  refuses_suite(named("E=8,N=256,device_name=X.json"), own);
  write_text("m.json", "{\"hidden_size\": 512, \"1\": {\"BLOCK_SIZE_M\": 16}}");
  refuses_suite(R"("config": "file:m.json")",
                "m.json: /hidden_size: tuned for hidden_size \"512\"");
}

TEST_F(BadInput, ARunMayNotWriteOverWhatItReads) {
  write_text("E=8.json", "{\"1\": {\"BLOCK_SIZE_M\": 16}}");
  write_text("trace", "0 1\n");
  const std::string file =
      suite(R"("backend": "serving", "config": "file:E=8.json", "routing": "trace")");
  fs::create_symlink(file, path("link"));
  fs::create_hard_link(path("trace"), path("hard"));
  fs::copy_file(path("trace"), path("x.journal"));
  for (const auto& [out, role] : {std::pair("suite.json", "it is the suite that is run"),
                                  std::pair("link", "it is the suite that is run"),
                                  std::pair("config.json", "it is a model of the suite"),
                                  std::pair("E=8.json", "it is a config file"),
                                  std::pair("trace", "it is a trace of the suite"),
                                  std::pair("hard", "it is a trace of the suite")}) {
    const std::string before = read_text_file(path(out));
    refuses({"run", file, "--out", path(out)}, role);
    EXPECT_EQ(read_text_file(path(out)), before);
  }
  refuses({"run", file, "--out", path("")}, "it is a folder");
}

TEST_F(BadInput, ABackendThatIsNoneIsShownInTheSuite) {
  refuses_suite(R"("backend": "servign")",
                "suite.json:3: /cases/0/backend: no backend is called \"servign\"; did you mean "
                "\"serving\"?");
}

// A model's folder has no name of its own in a path that is a file's alone.
TEST_F(BadInput, ACheckpointInTheCurrentFolderIsLookedForThere) {
  const fs::path fixture = "harness/checkpoint/fixtures/compressed-tensors/fp8-channel-token";
  fs::copy_file(fixture / "config.json", path("config.json"), fs::copy_options::overwrite_existing);
  suite(R"("backend": "serving", "layer": 0)");
  const fs::path before = fs::current_path();
  fs::current_path(path(""));
  refuses({"run", "suite.json"}, ".: it holds no safetensors file");
  fs::current_path(before);
}

TEST_F(BadInput, ASingleOpTakesNoCheckpointsWeights) {
  const std::string file = write_text("ops.json", R"({"schema": "moegauge.suite/1", "name": "t",
      "defaults": {"model": "config.json", "scheme": "bf16", "tokens": 1, "backend": "serving"},
      "cases": [{"op": ["fused_moe", "activation"]}]})");
  refuses({"run", file, "--weights", folder_.string(), "--layer", "0"},
          "the suite measures the single op activation, and a checkpoint's weights are for whole "
          "layers; leave single ops out with --filter 'fused_moe*'");
  refuses({"run", file, "--weights", folder_.string(), "--layer", "0", "--filter", "fused_moe*"},
          "it holds no safetensors file");
}

TEST_F(BadInput, ARoutingThatIsNoneNamesTheNearest) {
  refuses_suite(R"("backend": "serving", "routing": "unifrom")", "did you mean \"uniform\"?");
  refuses({"tune", "--model", path("config.json"), "--scheme", "bf16", "--routing", "unifrom"},
          "--routing: unknown routing \"unifrom\"; did you mean \"uniform\"?");
}

TEST_F(BadInput, WhereNothingIsSelectedItSaysByWhat) {
  const std::string file = suite(R"("backend": "serving")");
  EXPECT_EQ(run({"run", file, "--shard", "9/9"}), 4);
  EXPECT_THAT(err_, HasSubstr("--shard 9/9 holds no case: 1 point is selected"));
  EXPECT_EQ(run({"run", file, "--shard", "1/1", "--filter", "*/M=7"}), 4);
  EXPECT_THAT(err_, AllOf(HasSubstr("matches --filter \"*/M=7\"; an id is, e.g., fused_moe/")));
}

// One shard and an index; the folder of fixtures has no index.
TEST_F(BadInput, NothingIsWrittenOverTheWeightsOfACheckpoint) {
  const fs::path fixture = "harness/checkpoint/fixtures/compressed-tensors/fp8-channel-token";
  fs::create_directory(path("ck"));
  fs::copy_file(fixture / "config.json", path("ck/config.json"));
  fs::copy_file(fixture / "model.safetensors", path("ck/model-1.safetensors"));
  write_text("ck/model.safetensors.index.json", R"({"weight_map": {
      "model.layers.0.mlp.experts.0.down_proj.weight_scale": "model-1.safetensors"}})");
  fs::create_symlink(path("ck/model-1.safetensors"), path("link"));
  fs::create_symlink(path("ck/model-1.safetensors"), path("x.journal"));
  const std::string by_option = suite(R"("backend": "serving")");
  const auto written = [&](const std::string& name, const std::string& fields) {
    return write_text(name, R"({"schema": "moegauge.suite/1", "name": "t", "cases": [{"model":
        "ck/config.json", "scheme": "fp8_ptpc", "backend": "serving", "tokens": 1)" +
                                fields + "}]}");
  };
  const std::vector<std::vector<std::string>> runs = {
      {"run", by_option, "--weights", path("ck"), "--layer", "0"},
      {"run", written("layer.json", R"(, "layer": 0)")},
      {"run", written("shape.json", "")}};  // reads none of them
  for (const auto& words : runs) {
    const auto refuses_with = [&](const std::string& option, const std::string& place,
                                  const std::string& sentence) {
      std::vector<std::string> more = words;
      more.insert(more.end(), {option, path(place)});
      refuses(more, sentence);
    };
    for (const char* place :
         {"ck/model-1.safetensors", "ck/model.safetensors.index.json", "link", "x"}) {
      refuses_with("--out", place, "it is a file of weights, ");
    }
    refuses_with("--dump", "ck", "ck/model-1.safetensors, a file of weights");
  }
  for (const char* option : {"--out", "--result", "--markdown"}) {
    refuses({"tune", "--model", path("ck/config.json"), "--scheme", "fp8_ptpc", "--tokens", "1",
             option, path("link")},
            "it is a file of weights, ");
  }
  EXPECT_EQ(read_text_file(path("ck/model-1.safetensors")),
            read_text_file(fixture / "model.safetensors"));
}

TEST_F(BadInput, TheJournalMayNotLandOnAnInputEither) {
  write_text("x.journal", "0 1\n");
  refuses({"run", suite(R"("backend": "serving", "routing": "x.journal")"), "--out", path("x")},
          "it is a trace of the suite");
}

TEST_F(BadInput, AGateMayNotWriteOverWhatItReadsNorTwiceToOneFile) {
  write("b.json", model_result_);
  write_text("p.json", read_text_file("suites/policies/default.json"));
  for (const char* option : {"--markdown", "--junit"}) {
    refuses({"gate", path("r.json"), "--baseline", path("b.json"), option, path("r.json")},
            "it is the result");
    refuses({"gate", path("r.json"), "--baseline", path("b.json"), option, path("b.json")},
            "it is the baseline");
    refuses({"gate", path("r.json"), "--baseline", path("b.json"), "--policy", path("p.json"),
             option, path("p.json")},
            "it is the policy");
  }
  EXPECT_EQ(gate("r.json", "b.json", {"--markdown", path("new"), "--junit", path("new")}), 2);
  EXPECT_THAT(err_, HasSubstr("it is --junit"));
  refuses({"compare", path("r.json"), path("b.json"), "--markdown", path("b.json")},
          "it is a result");
  EXPECT_EQ(gate("r.json", "b.json"), 0) << "all is as it was";
}

TEST_F(BadInput, OutputsThatCannotBeWrittenAreFoundBeforeAnythingIsMeasured) {
  const std::string nowhere = path("r.json/f"), file = suite(R"("backend": "serving")");
  refuses({"run", file, "--out", nowhere}, path("r.json") + " is no folder; name a file in ");
  for (const char* option : {"--markdown", "--junit"}) {
    refuses({"gate", path("r.json"), "--baseline", path("r.json"), option, nowhere},
            option + (" " + nowhere) + ": ");
    EXPECT_EQ(gate("r.json", "r.json", {option, "/dev/null"}), 0);
    EXPECT_EQ(gate("r.json", "r.json", {option, path("made/for/it")}), 0) << err_;
  }
  EXPECT_TRUE(fs::is_regular_file(path("made/for/it")));
}

TEST_F(BadInput, WhatIsNoRegularFileIsRefusedWithoutWaiting) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  refuses({"gate", path("pipe"), "--baseline", path("r.json")}, "it is a pipe");
  refuses({"gate", path("r.json"), "--baseline", path("pipe")}, "it is a pipe");
  refuses({"gate", path("r.json"), "--baseline", path("")}, "it is a folder");
  refuses({"gate", path("r.json"), "--baseline", path("r.json"), "--policy", path("pipe")},
          "no file and no shipped policy");
  refuses({"compare", "/dev/zero", path("r.json")}, "it is a device");
  refuses({"run", path("pipe")}, "there is no such suite");
  refuses({"explain", path("pipe"), "--scheme", "bf16"}, "it is a pipe");
  refuses({"convert", path("pipe"), path("out"), "--to", "fp8_block", "--flavor", "ocp"}, "pipe");
  refuses_suite(R"("routing": "pipe")", "it is a pipe");
  const std::string file = suite(R"("backend": "serving")");
  refuses({"run", file, "--out", path("pipe")}, "--out " + path("pipe") + ": it is a pipe");
  refuses({"gate", path("r.json"), "--baseline", path("r.json"), "--junit", path("pipe")},
          "it is a pipe");
  ASSERT_EQ(::mkfifo(path("out.json.journal").c_str(), 0600), 0);
  refuses({"run", suite(R"("backend": "serving")"), "--out", path("out.json")}, "it is a pipe");
}

TEST_F(BadInput, AFileThatCannotBeReadIsShownWhereTheSuiteAsksForIt) {
  write_text("bad", "no numbers\n");
  const auto at = [&](const std::string& place) {
    return path("suite.json") + ":" + place + ": " + path("bad") + ":";
  };
  refuses_suite(R"("backend": "serving", "routing": ["uniform", "bad"])",
                at("3: /cases/0/routing/1"));
  refuses_suite(R"("backend": "serving", "config": "file:bad")", at("3: /cases/0/config"));
  refuses_suite(R"("backend": "serving", "inputs": "file:bad")", at("3: /cases/0/inputs"));
  const std::string file = write_text("rows.json", R"({"schema": "moegauge.suite/1", "name": "t",
      "cases": [{"model": "config.json", "scheme": "bf16", "inputs": "file:bad"}]})");
  refuses({"run", file, "--out", path("out.json")},
          path("rows.json") + ":2: /cases/0: " + path("bad") + ":");
}

TEST_F(BadInput, NeverPutsControlCharactersOnTheTerminal) {
  refuses({"gate", path("a\x1b[31m\nb"), "--baseline", path("r.json")}, "a [31m b");
}

}  // namespace
}  // namespace moegauge
