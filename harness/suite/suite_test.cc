#include "harness/suite/suite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "reference/base/input_error.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class SuiteFile : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() /
              ("moegauge_suite_" + std::string(test->name()) + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // `rest` goes into an otherwise right suite, from line 3 on.
  Suite load(const std::string& rest) {
    const fs::path file = folder_ / "s.json";
    std::ofstream(file) << "{\"schema\": \"moegauge.suite/1\",\n\"name\": \"s\",\n" + rest +
                               "\n}\n";
    return load_suite(file, ".");
  }
  std::vector<std::string> ids(const std::string& rest) {
    std::vector<std::string> all;
    for (const auto& c : load(rest).cases) all.push_back(case_id(c));
    return all;
  }
  std::string refusal(const std::string& rest) {
    try {
      load(rest);
    } catch (const InputError& error) {
      std::string what = error.what();
      const std::string folder = folder_.string() + "/";
      for (auto at = what.find(folder); at != std::string::npos; at = what.find(folder))
        what.erase(at, folder.size());
      return what;
    }
    return "accepted";
  }

  fs::path folder_;
};

// NOLINTBEGIN(bugprone-suspicious-missing-comma): ids that are longer than a line
TEST_F(SuiteFile, ExpandsListsAsAProductWithConfigFastestAndModelSlowest) {
  // By hand: 2 schemes x 2 batch sizes x 2 configs; the order of keys in the file says nothing.
  EXPECT_EQ(
      ids(R"("cases": [{"config": ["default", "tuned"], "tokens": [4, 1], "scheme": ["bf16", "fp8_block"],
                              "model": "mixtral-8x7b", "tp": 2}])"),
      (std::vector<std::string>{
          "fused_moe/mixtral-8x7b/bf16/tp2.ep1/auto/default/uniform/gaussian/cold_weights/graph/"
          "M=4",
          "fused_moe/mixtral-8x7b/bf16/tp2.ep1/auto/tuned/uniform/gaussian/cold_weights/graph/M=4",
          "fused_moe/mixtral-8x7b/bf16/tp2.ep1/auto/default/uniform/gaussian/cold_weights/graph/"
          "M=1",
          "fused_moe/mixtral-8x7b/bf16/tp2.ep1/auto/tuned/uniform/gaussian/cold_weights/graph/M=1",
          "fused_moe/mixtral-8x7b/fp8_block/tp2.ep1/auto/default/uniform/gaussian/cold_weights/"
          "graph/M=4",
          "fused_moe/mixtral-8x7b/fp8_block/tp2.ep1/auto/tuned/uniform/gaussian/cold_weights/graph/"
          "M=4",
          "fused_moe/mixtral-8x7b/fp8_block/tp2.ep1/auto/default/uniform/gaussian/cold_weights/"
          "graph/M=1",
          "fused_moe/mixtral-8x7b/fp8_block/tp2.ep1/auto/tuned/uniform/gaussian/cold_weights/graph/"
          "M=1"}));
}
// NOLINTEND(bugprone-suspicious-missing-comma)

TEST_F(SuiteFile, LetsACaseReplaceADefaultAsAWhole) {
  EXPECT_EQ(
      ids(R"("defaults": {"model": "mixtral-8x7b", "scheme": "bf16", "tokens": [1, 2], "inputs": "exact"},
                   "cases": [{"tokens": 0, "routing": "zipf:1.2"}, {"inputs": "gaussian", "op": "route"}])"),
      (std::vector<std::string>{
          "fused_moe/mixtral-8x7b/bf16/tp1.ep1/auto/default/zipf:1.2/exact/cold_weights/graph/M=0",
          "route/mixtral-8x7b/bf16/tp1.ep1/auto/default/uniform/gaussian/cold_weights/graph/M=1",
          "route/mixtral-8x7b/bf16/tp1.ep1/auto/default/uniform/gaussian/cold_weights/graph/M=2"}));
}

TEST_F(SuiteFile, ReadsEveryFormOfConfig) {
  std::ofstream(folder_ / "t.json") << "{}";
  const auto suite = load(R"("cases": [{"model": "mixtral-8x7b", "scheme": "bf16", "tokens": 1,
    "config": ["default", "tuned", "file:t.json", {"num_threads": 2, "BLOCK_SIZE_M": 16}]}])");
  ASSERT_EQ(suite.cases.size(), 4u);
  EXPECT_EQ(suite.cases[2].config, "file:" + (folder_ / "t.json").string());
  EXPECT_EQ(suite.cases[3].config, R"({"BLOCK_SIZE_M":16,"num_threads":2})");
}

TEST_F(SuiteFile, MayLimitTheTimeOfACase) {
  const std::string cases =
      R"("cases": [{"model": "mixtral-8x7b", "scheme": "bf16", "tokens": 1}])";
  EXPECT_EQ(load(cases).seconds_per_case, std::nullopt);
  EXPECT_EQ(load(R"("seconds_per_case": 0.25, )" + cases).seconds_per_case, 0.25);
  EXPECT_THAT(refusal(R"("seconds_per_case": 0, )" + cases),
              testing::HasSubstr("/seconds_per_case: 0"));
}

TEST_F(SuiteFile, TakesPathsFromItsOwnFolder) {
  fs::create_directories(folder_ / "m");
  std::ofstream(folder_ / "m" / "config.json")
      << R"({"model_type": "mixtral", "hidden_size": 64, "intermediate_size": 96,
    "num_local_experts": 4, "num_experts_per_tok": 2})";
  std::ofstream(folder_ / "trace.txt") << "0 1\n";
  const auto suite = load(
      R"("cases": [{"model": "m/config.json", "scheme": "bf16", "tokens": 1, "routing": "trace.txt"}])");
  EXPECT_EQ(suite.cases.at(0).model, (folder_ / "m" / "config.json").string());
  EXPECT_EQ(suite.cases.at(0).routing, (folder_ / "trace.txt").string());
}

// Beside the suite, from within its folder: a folder's bare name would be a shipped model's.
TEST_F(SuiteFile, TakesAFolderBesideItForAModelHoweverItsPathIsWritten) {
  fs::create_directories(folder_ / "ck");
  std::ofstream(folder_ / "ck" / "config.json")
      << R"({"model_type": "mixtral", "hidden_size": 64, "intermediate_size": 96,
    "num_local_experts": 4, "num_experts_per_tok": 2})";
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  for (const char* written : {"./ck", "ck/", "x/../ck", "ck/config.json"}) {
    std::ofstream("s.json")
        << R"({"schema": "moegauge.suite/1", "name": "s", "cases": [{"model": ")" << written
        << R"(", "layer": 0, "scheme": "bf16", "tokens": 1}]})";
    EXPECT_NO_THROW(load_suite("s.json", before)) << written;
  }
  fs::current_path(before);
}

// A case with one wrong value.
std::string with(const std::string& pair) {
  return R"("cases": [{"model": "mixtral-8x7b", "scheme": "bf16", "tokens": [1],
)" + pair +
         "}]";
}

TEST_F(SuiteFile, ExpandsAnOpsOwnFieldsIntoItsId) {
  EXPECT_EQ(
      ids(R"("defaults": {"model": "mixtral-8x7b", "scheme": "bf16", "tokens": 4, "block_size": 16},
             "cases": [{"op": ["align", "reduce"], "tp": 1}, {"op": "align", "block_size": [32, 8]}])"),
      (std::vector<std::string>{"align:block_size=16/mixtral-8x7b/bf16/tp1.ep1/auto/default/"
                                "uniform/"
                                "gaussian/cold_weights/graph/M=4",
                                "reduce/mixtral-8x7b/bf16/tp1.ep1/auto/default/uniform/"
                                "gaussian/"
                                "cold_weights/graph/M=4",
                                "align:block_size=32/mixtral-8x7b/bf16/tp1.ep1/auto/default/"
                                "uniform/"
                                "gaussian/cold_weights/graph/M=4",
                                "align:block_size=8/mixtral-8x7b/bf16/tp1.ep1/auto/default/uniform/"
                                "gaussian/cold_weights/graph/M=4"}));
}

TEST_F(SuiteFile, LeavesFieldsOutOfAnIdThatAreAsTheyAreByDefault) {
  const std::string rest = R"("model": "mixtral-8x7b", "scheme": "bf16", "tokens": 4}])";
  EXPECT_EQ(
      ids(R"("cases": [{"op": "align", )" + rest),
      ids(R"("cases": [{"op": "align", "block_size": 64, "remote_experts": "blocks", )" + rest));
  EXPECT_EQ(ids(R"("cases": [{"op": "grouped_gemm", "layout": "batched", "block_size": 8, )" + rest)
                .at(0)
                .substr(0, 50),
            "grouped_gemm:block_size=8,layout=batched/mixtral-8");
}

TEST_F(SuiteFile, RefusesFieldsOfAnotherOpAndWrongValuesOfOnesOwn) {
  const auto one = [&](const std::string& fields) {
    return refusal(R"("cases": [{"model": "mixtral-8x7b", "scheme": "bf16", "tokens": 4, )" +
                   fields + "}]");
  };
  EXPECT_EQ(one(R"("op": "reduce", "block_size": 8)"),
            "s.json:3: /cases/0/block_size: the op reduce has no field \"block_size\"; it has "
            "pair_out");
  EXPECT_EQ(one(R"("block_size": 8)"),
            "s.json:3: /cases/0/block_size: the op fused_moe has no field \"block_size\"; it has "
            "shared_experts");
  EXPECT_THAT(one(R"("op": "align", "blok_size": 8)"),
              testing::HasSubstr("did you mean \"block_size\"?"));
  EXPECT_THAT(one(R"("op": "align", "remote_experts": "skiped")"),
              testing::HasSubstr("did you mean \"skipped\"?"));
  EXPECT_THAT(one(R"("op": "align", "block_size": 0)"), testing::HasSubstr("/cases/0/block_size"));
  EXPECT_THAT(one(R"("op": "aling")"), testing::HasSubstr("did you mean \"align\"?"));
}

TEST_F(SuiteFile, KnowsLayersWithTheirSharedExpertsFused) {
  const std::string rest = R"("scheme": "bf16", "tokens": 4}])";
  const auto deepseek = ids(R"("cases": [{"model": "deepseek-v3", "shared_experts": ["separate",
    "fused"], )" + rest);
  EXPECT_EQ(deepseek.at(0).substr(0, 22), "fused_moe/deepseek-v3/");
  EXPECT_EQ(deepseek.at(1).substr(0, 43), "fused_moe:shared_experts=fused/deepseek-v3/");
  EXPECT_THAT(refusal(R"("cases": [{"model": "mixtral-8x7b", "shared_experts": "fused", )" + rest),
              testing::HasSubstr("no shared experts to fuse"));
  EXPECT_THAT(
      refusal(R"("cases": [{"model": "deepseek-v3", "shared_experts": "appended", )" + rest),
      testing::HasSubstr("separate"));
}

TEST_F(SuiteFile, RefusesMisspeltKeysAndNamesTheRightOne) {
  EXPECT_EQ(refusal(with(R"("cofnig": "tuned")")),
            "s.json:4: /cases/0/cofnig: unknown key \"cofnig\"; did you mean \"config\"?");
  EXPECT_EQ(refusal("\"case\": []"),
            "s.json:3: /case: unknown key \"case\"; did you mean \"cases\"?");
  EXPECT_EQ(refusal("\"defaults\": {\"token\": 1}, \"cases\": []"),
            "s.json:3: /defaults/token: unknown key \"token\"; did you mean \"tokens\"?");
  EXPECT_EQ(refusal("\"cases\": [{\"model\": \"mixtral-8x7b\", \"tokens\": 1}]"),
            "s.json:3: /cases/0: the key \"scheme\" is missing; add it here or to the defaults");
}

TEST_F(SuiteFile, RefusesWrongValuesWithPointerAndRange) {
  EXPECT_EQ(refusal(with(R"("tp": 0)")),
            "s.json:4: /cases/0/tp: 0 is out of range; write an integer from 1 to 4096");
  EXPECT_EQ(
      refusal(with(R"("tp": [1, "2"])")),
      "s.json:4: /cases/0/tp/1: found the string \"2\"; an integer from 1 to 4096 is expected");
  EXPECT_EQ(refusal(with(R"("ep": [])")),
            "s.json:4: /cases/0/ep: an empty list; give at least one value");
  EXPECT_EQ(refusal(with(R"("op": "fused_mo")")),
            "s.json:4: /cases/0/op: unknown op \"fused_mo\"; did you mean \"fused_moe\"?");
  EXPECT_EQ(refusal(with(R"("inputs": "gauss")")),
            "s.json:4: /cases/0/inputs: unknown inputs \"gauss\"; did you mean \"gaussian\"?");
  EXPECT_EQ(refusal(with(R"("cache": "warm")")),
            "s.json:4: /cases/0/cache: unknown cache \"warm\"; known: cold_weights, cold, hot");
  EXPECT_EQ(refusal(with(R"("launch": true)")),
            "s.json:4: /cases/0/launch: found true; a string is expected");
  EXPECT_EQ(refusal(with(R"("config": "tune")")),
            "s.json:4: /cases/0/config: unknown config \"tune\"; did you mean \"tuned\"?");
  EXPECT_EQ(
      refusal(with(R"("config": "file:no.json")")),
      "s.json:4: /cases/0/config: no file \"no.json\"; give a path relative to the suite's folder");
  EXPECT_EQ(refusal(with(R"("config": {"BLOCK_SIZE_M": -16})")),
            "s.json:4: /cases/0/config/BLOCK_SIZE_M: -16 is out of range; write an integer from 0 "
            "to 2147483647");
  EXPECT_EQ(refusal(with(R"("routing": "zipf:")")),
            "s.json:4: /cases/0/routing: 'zipf:' has no usable parameter; write zipf:S with S "
            "from 0 to 1e6, as zipf:1.2");
  EXPECT_EQ(refusal(with(R"("routing": "dirichlet:0")")),
            "s.json:4: /cases/0/routing: 'dirichlet:0' has no usable parameter; write "
            "dirichlet:A with A above 0 to 1e6");
  EXPECT_EQ(refusal(with(R"("routing": "zipf:nan")")),
            "s.json:4: /cases/0/routing: 'zipf:nan' has no usable parameter; write zipf:S with S "
            "from 0 to 1e6, as zipf:1.2");
  EXPECT_EQ(refusal(with(R"("routing": "ballanced")")),
            "s.json:4: /cases/0/routing: unknown routing \"ballanced\"; did you mean "
            "\"balanced\"?; write uniform, balanced, single, zipf:S, dirichlet:A or the path of a "
            "trace file");
  EXPECT_THAT(refusal(with(R"("routing": "unifrom")")), HasSubstr("did you mean \"uniform\"?"));
  EXPECT_THAT(refusal(with(R"("routing": "zifp:1.2")")), HasSubstr("did you mean \"zipf\"?"));
  EXPECT_THAT(refusal(with(R"("routing": "monday.trace")")),
              HasSubstr("unknown routing \"monday.trace\"; write uniform"));
}

TEST_F(SuiteFile, RefusesSchemesThatDoNotExist) {
  const auto scheme = [&](const std::string& name) {
    return refusal("\"cases\": [{\"model\": \"mixtral-8x7b\", \"tokens\": 1, \"scheme\": \"" +
                   name + "\"}]");
  };
  EXPECT_EQ(scheme("w4a16_g128"), "accepted");
  EXPECT_EQ(scheme("fp8_blok"),
            "s.json:3: /cases/0/scheme: unknown scheme \"fp8_blok\"; did you mean \"fp8_block\"?");
  EXPECT_EQ(scheme("bf16_fast"),
            "s.json:3: /cases/0/scheme: unknown options in scheme \"bf16_fast\"; bf16 takes none");
  EXPECT_THAT(
      scheme("int3"),
      testing::StartsWith("s.json:3: /cases/0/scheme: unknown scheme \"int3\"; known: bf16, "));
}

TEST_F(SuiteFile, RefusesLayersThatCannotBe) {
  EXPECT_EQ(refusal(with(R"("tp": 3)")),
            "s.json:3: /cases/0: mixtral-8x7b: tp 3 does not divide the intermediate size 14336; "
            "use a divisor");
  EXPECT_EQ(refusal(with(R"("ep": 16)")),
            "s.json:3: /cases/0: mixtral-8x7b: ep 16 over 8 experts; use 1 to 8");
  EXPECT_EQ(refusal(R"("cases": [{"model": "mixtral", "scheme": "bf16", "tokens": 1}])"),
            "s.json:3: /cases/0: ./suites/models: no model \"mixtral\"; nearest: mixtral-8x7b; or "
            "give the path of a config.json");
}

TEST_F(SuiteFile, RefusesTheWeightsOfACheckpointForASingleOp) {
  EXPECT_EQ(refusal(with(R"("op": "activation", "layer": 3)")),
            "s.json:3: /cases/0: layer 3 of the model \"mixtral-8x7b\"; layers are those of a "
            "checkpoint: give the path of its folder as model");
  fs::create_directories(folder_ / "ck");
  std::ofstream(folder_ / "ck" / "config.json")
      << R"({"model_type": "mixtral", "hidden_size": 64, "intermediate_size": 96,
    "num_local_experts": 4, "num_experts_per_tok": 2})";
  EXPECT_EQ(refusal(R"("cases": [{"op": "activation", "model": "ck/", "layer": 3,
                     "scheme": "bf16", "tokens": 1}])"),
            "s.json:3: /cases/0: layer 3 of a checkpoint for the op activation; a checkpoint's "
            "weights are for whole layers; leave the layer out, and the op's are generated for the "
            "model's shape");
}

TEST_F(SuiteFile, KnowsWhereEachBackendIsNamedFirst) {
  const Suite suite = load(R"("defaults": {"backend": "cpu"}, "cases": [
{"model": "mixtral-8x7b", "scheme": "bf16", "tokens": 1},
{"model": "mixtral-8x7b", "scheme": "bf16", "tokens": 2, "backend": ["cpu", "cuda"]}])");
  const std::string file = (folder_ / "s.json").string();
  EXPECT_EQ(suite.backend_places.at("cpu"), file + ":3: /defaults/backend");
  EXPECT_EQ(suite.backend_places.at("cuda"), file + ":5: /cases/1/backend/1");
}

TEST_F(SuiteFile, RefusesTheSameCaseTwice) {
  const std::string id =
      "fused_moe/mixtral-8x7b/bf16/tp1.ep1/auto/default/uniform/gaussian/cold_weights/graph/M=1";
  EXPECT_EQ(
      refusal(with(R"("backend": ["auto", "auto"])")),
      "s.json:3: /cases/0: the case " + id + " is listed twice (first in /cases/0); list it once");
  EXPECT_EQ(
      refusal(R"("defaults": {"model": "mixtral-8x7b", "scheme": "bf16"},
"cases": [{"tokens": [1, 2]},
{"tokens": [4, 1]}])"),
      "s.json:5: /cases/1: the case " + id + " is listed twice (first in /cases/0); list it once");
}

TEST_F(SuiteFile, RefusesEmptyAndEndlessSuites) {
  EXPECT_EQ(refusal("\"cases\": []"), "s.json:3: /cases: no cases; list at least one");
  std::string many = "0";
  for (int i = 1; i < 2000; ++i) many += "," + std::to_string(i);
  EXPECT_EQ(
      refusal("\"cases\": [{\"model\": \"mixtral-8x7b\", \"scheme\": \"bf16\", \"tokens\": [" +
              many + "],\n\"config\": [\"default\"], \"backend\": [" +
              [&] {
                std::string names;
                for (int i = 0; i < 2000; ++i)
                  names += (i ? ",\"b" : "\"b") + std::to_string(i) + "\"";
                return names;
              }() +
              "]}]"),
      "s.json:3: /cases/0: more than 1000000 cases; shorten the lists");
}

TEST(ShippedSuites, Load) {
  int loaded = 0;
  for (const auto& entry : fs::directory_iterator("suites")) {
    if (entry.path().extension() != ".json") continue;
    const Suite suite = load_suite(entry.path(), ".");
    EXPECT_EQ(suite.name, entry.path().stem().string());
    EXPECT_FALSE(suite.description.empty());
    ++loaded;
  }
  EXPECT_GT(loaded, 8);
}

TEST(ShippedSuites, QuickComparesTunedWithDefaultInBothSchemesAtFiveBatchSizes) {
  const Suite quick = load_suite("suites/quick.json", ".");
  ASSERT_EQ(quick.cases.size(), 2u * 5 * 2);
  for (std::size_t i = 0; i < quick.cases.size(); i += 2) {
    const CaseCoordinates& a = quick.cases[i];
    const CaseCoordinates& b = quick.cases[i + 1];
    EXPECT_EQ(a.config, "default");
    EXPECT_EQ(b.config, "tuned");
    EXPECT_EQ(point_id(a), point_id(b));
    EXPECT_EQ(a.scheme, i < 10 ? "fp8_block" : "bf16");
    EXPECT_EQ(a.tokens, std::int64_t{1} << (i % 10));  // 1, 4, 16, 64, 256
  }
}

}  // namespace
}  // namespace moegauge
