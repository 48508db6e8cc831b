#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "harness/suite/own_fields.h"
#include "harness/suite/suite.h"
#include "reference/base/input_error.h"
#include "reference/schemes/scheme.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

// A source tree of its own with one model file.
class ModelFile : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::temp_directory_path() /
            ("moegauge_model_" + std::string(test->name()) + std::to_string(::getpid()));
    fs::create_directories(root_ / "suites" / "models");
  }
  void TearDown() override { fs::remove_all(root_); }

  // Replaces `from` by `to` in a right model file and says what load_model says of it.
  std::string refusal(const std::string& from, const std::string& to) {
    std::string text = R"({
"schema": "moegauge.model/1",
"name": "tiny",
"experts": 8,
"top_k": 2,
"hidden_size": 64,
"moe_intermediate_size": 96,
"activation": {"kind": "silu_and_mul"},
"routing": {"rule": "softmax", "renormalize": true},
"served_as": ["bf16"]
}
)";
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    std::ofstream(root_ / "suites" / "models" / "tiny.json") << text;
    try {
      load_model("tiny", root_);
    } catch (const InputError& error) {
      std::string what = error.what();
      const std::string folder = (root_ / "suites" / "models").string() + "/";
      if (what.starts_with(folder)) what.erase(0, folder.size());
      return what;
    }
    return "accepted";
  }

  fs::path root_;
};

TEST_F(ModelFile, IsRefusedWithLinePointerAndTheRightName) {
  EXPECT_EQ(refusal("8", "8"), "accepted");
  EXPECT_EQ(refusal("moegauge.model/1", "moegauge.model/2"),
            "tiny.json:2: /schema: unknown schema \"moegauge.model/2\"; did you mean "
            "\"moegauge.model/1\"?");
  EXPECT_EQ(refusal("\"experts\"", "\"expert\""),
            "tiny.json:4: /expert: unknown key \"expert\"; did you mean \"experts\"?");
  EXPECT_EQ(refusal("\"top_k\": 2,\n", ""), "tiny.json:1: the key \"top_k\" is missing; add it");
  EXPECT_EQ(refusal("64", "\"64\""),
            "tiny.json:6: /hidden_size: found the string \"64\"; an integer from 1 to 1048576 is "
            "expected");
  EXPECT_EQ(refusal("silu_and_mul", "silu"),
            "tiny.json:8: /activation/kind: unknown activation \"silu\"; known: silu_and_mul, "
            "gelu_and_mul, "
            "gelu_tanh_and_mul, swiglu_clamped");
  EXPECT_EQ(refusal("\"silu_and_mul\"", "\"silu_and_mul\", \"limit\": 7"),
            "tiny.json:8: /activation/limit: only swiglu_clamped has parameters; remove the key");
  EXPECT_EQ(refusal("silu_and_mul", "swiglu_clamped"),
            "tiny.json:8: /activation: the key \"alpha\" is missing; add it");
  EXPECT_EQ(
      refusal("\"rule\": \"softmax\"", "\"rule\": \"sofmax\""),
      "tiny.json:9: /routing/rule: unknown routing rule \"sofmax\"; did you mean \"softmax\"?");
  EXPECT_EQ(refusal("[\"bf16\"]", "[\"bf17\"]"),
            "tiny.json:10: /served_as/0: unknown scheme \"bf17\"; did you mean \"bf16\"?");
  EXPECT_EQ(refusal("\"tiny\"", "\"small\""),
            "tiny.json: the file holds a model named \"small\"; name and file must agree");
}

TEST_F(ModelFile, IsRefusedWhereItContradictsItself) {
  EXPECT_EQ(refusal("\"top_k\": 2", "\"top_k\": 9"),
            "tiny.json: top_k 9 of 8 experts; top_k must not exceed the number of experts");
  EXPECT_EQ(refusal("\"served_as\"", "\"router_weight_on_input\": true, \"served_as\""),
            "tiny.json: router weight on input with top_k 2; it is defined for top_k 1 only");
  EXPECT_EQ(refusal("\"rule\": \"softmax\"", "\"rule\": \"sigmoid_top1\""),
            "tiny.json: sigmoid_top1 routing with top_k 2; top_k must be 1");
  // 8 groups of one expert each: the top one of them cannot give two experts.
  EXPECT_EQ(refusal("\"rule\": \"softmax\"", "\"rule\": \"grouped_sigmoid\", \"groups\": 8"),
            "tiny.json: top 1 of 8 groups of 8 experts cannot give 2 experts; groups must divide "
            "the experts and the "
            "top groups hold top_k");
}

TEST(ShippedModels, AllLoad) {
  // The field's models of 2024-2026 that this project measures, by the names in their files.
  const std::vector<std::string> expected = {
      "deepseek-v3",  "glm-4.5",          "glm-4.5-air",    "gpt-oss-120b", "gpt-oss-20b",
      "kimi-k2",      "llama-4-maverick", "llama-4-scout",  "minimax-m2",   "minimax-m3",
      "mixtral-8x7b", "qwen3-30b-a3b",    "qwen3.5-35b-a3b"};
  EXPECT_EQ(model_names("."), expected);
  for (const auto& name : model_names(".")) {
    const Model model = load_model(name, ".");
    EXPECT_EQ(model.name, name);
    EXPECT_FALSE(model.hf_id.empty()) << name;
    EXPECT_FALSE(model.source.empty()) << name;
    EXPECT_FALSE(model.served_as.empty()) << name;
    for (const auto& scheme : model.served_as) EXPECT_NE(make_scheme(scheme), nullptr) << scheme;
  }
}

TEST(ShippedModels, HoldWhatTheirPublishersSay) {
  const Model deepseek = load_model("deepseek-v3", ".");
  EXPECT_EQ(deepseek.layer.experts, 256);
  EXPECT_EQ(deepseek.layer.hidden_size, 7168);
  EXPECT_EQ(deepseek.layer.intermediate_size, 2048);
  EXPECT_EQ(deepseek.groups, 8);
  EXPECT_EQ(deepseek.top_groups, 4);
  EXPECT_TRUE(deepseek.correction_bias);
  EXPECT_EQ(deepseek.scaling_factor, 2.5);
  const Model oss = load_model("gpt-oss-20b", ".");
  EXPECT_EQ(oss.layer.activation.kind, ActivationKind::swiglu_clamped);
  EXPECT_EQ(oss.layer.activation.limit, 7.0);
  EXPECT_EQ(oss.layer.gate_up_order, GateUpOrder::interleaved);
  EXPECT_TRUE(oss.layer.expert_bias);
  EXPECT_TRUE(oss.renormalize);
  EXPECT_TRUE(load_model("llama-4-scout", ".").layer.router_weight_on_input);
}

TEST(UnknownModel, IsRefusedWithTheNearestNames) {
  try {
    load_model("qwen3-30b", ".");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "./suites/models: no model \"qwen3-30b\"; nearest: qwen3-30b-a3b, "
                 "qwen3.5-35b-a3b; or give the "
                 "path of a config.json");
  }
  EXPECT_THROW(load_model("mixtral-8x7b", "/nonexistent"), InputError);
  EXPECT_THROW(load_model("no/such/config.json", "."), InputError);
}

std::string rank_refusal(const std::string& name, std::int64_t tp, std::int64_t ep) {
  try {
    rank_layer(load_model(name, "."), tp, ep);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(RankLayer, DividesColumnsByTensorParallelism) {
  const Layer layer = rank_layer(load_model("qwen3-30b-a3b", "."), 4, 1);
  EXPECT_EQ(layer.intermediate_size, 192);  // 768 / 4
  EXPECT_EQ(layer.local_experts(), 128);
  EXPECT_TRUE(layer.expert_map.empty());
  EXPECT_EQ(rank_refusal("qwen3-30b-a3b", 5, 1),
            "qwen3-30b-a3b: tp 5 does not divide the intermediate size 768; use a divisor");
}

TEST(RankLayer, HoldsFusedSharedExpertsBehindItsOwn) {
  const Model deepseek = load_model("deepseek-v3", ".");
  const Layer whole = with_fused_experts(rank_layer(deepseek, 1, 1), 1);
  EXPECT_EQ(whole.experts, 257);
  EXPECT_EQ(whole.top_k, 9);
  EXPECT_TRUE(whole.expert_map.empty());
  const Layer rank = with_fused_experts(rank_layer(deepseek, 1, 8), 1);
  EXPECT_EQ(rank.local_experts(), 33);
  EXPECT_EQ(rank.local_id(31), 31);
  EXPECT_EQ(rank.local_id(32), -1);
  EXPECT_EQ(rank.local_id(256), 32);
}

TEST(RankLayer, GivesTheFirstRankTheRemainderOfTheExperts) {
  const Layer even = rank_layer(load_model("qwen3-30b-a3b", "."), 1, 8);
  EXPECT_EQ(even.local_experts(), 16);
  EXPECT_EQ(even.local_id(0), 0);
  EXPECT_EQ(even.local_id(15), 15);
  EXPECT_EQ(even.local_id(16), -1);
  // 160 experts over 7 ranks: 23 each for the first six of 7 * 22 + 6.
  const Layer ragged = rank_layer(load_model("glm-4.5", "."), 1, 7);
  EXPECT_EQ(ragged.local_experts(), 23);
  EXPECT_EQ(ragged.local_id(22), 22);
  EXPECT_EQ(ragged.local_id(23), -1);
  EXPECT_EQ(rank_layer(load_model("mixtral-8x7b", "."), 1, 8).local_experts(), 1);
  EXPECT_EQ(rank_refusal("mixtral-8x7b", 1, 9), "mixtral-8x7b: ep 9 over 8 experts; use 1 to 8");
}

}  // namespace
}  // namespace moegauge
