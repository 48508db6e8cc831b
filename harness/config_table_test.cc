#include "harness/config_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <limits>

#include "reference/base/input_error.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

class TableFile : public testing::Test {
 protected:
  void SetUp() override {
    file_ = fs::temp_directory_path() / ("moegauge_table_" + std::to_string(::getpid()) + ".json");
  }
  void TearDown() override { fs::remove(file_); }

  ConfigTable load(const std::string& text) {
    std::ofstream(file_) << text;
    return load_config_table(file_);
  }
  std::string refusal(const std::string& text) {
    try {
      load(text);
    } catch (const InputError& error) {
      return std::string(error.what()).substr(file_.string().size());
    }
    return "accepted";
  }

  fs::path file_;
};

TEST_F(TableFile, HoldsConfigsByBatchSizeAndMetadata) {
  const auto table = load(R"({"triton_version": "3.6.0", "hidden_size": 2048,
    "16": {"tile_m": 64, "tile_n": 128, "tile_k": 64}, "2": {"BLOCK_SIZE_M": 16, "SPLIT_K": 1}})");
  EXPECT_EQ(table.entries.size(), 2u);
  EXPECT_EQ(table.entries.at(16).values,
            (std::map<std::string, std::int64_t>{{"tile_k", 64}, {"tile_m", 64}, {"tile_n", 128}}));
  EXPECT_EQ(table.entries.at(2).values,
            (std::map<std::string, std::int64_t>{{"BLOCK_SIZE_M", 16}, {"SPLIT_K", 1}}));
  EXPECT_EQ(table.metadata, (std::map<std::string, std::string>{{"hidden_size", "2048"},
                                                                {"triton_version", "3.6.0"}}));
}

TEST_F(TableFile, IsRefusedWhereItIsNoTable) {
  EXPECT_EQ(refusal("{}"), ":1: no batch sizes; a table has at least one");
  EXPECT_EQ(refusal(R"({"triton_version": "3.6.0"})"),
            ":1: no batch sizes; a table has at least one");
  EXPECT_EQ(refusal("[]"), ":1: found an array of 0; an object is expected");
  EXPECT_EQ(refusal(R"({"1": {}})"), ":1: /1: an empty config; give at least BLOCK_SIZE_M");
  EXPECT_EQ(
      refusal(R"({"1": {"BLOCK_SIZE_M": 16.5}})"),
      ":1: /1/BLOCK_SIZE_M: found the number 16.5; an integer from 0 to 2147483648 is expected");
  EXPECT_EQ(
      refusal(R"({"1": {"BLOCK_SIZE_M": 16.0}})"),
      ":1: /1/BLOCK_SIZE_M: found the number 16.0; an integer from 0 to 2147483648 is expected");
  EXPECT_EQ(refusal(R"({"1": {"BLOCK_SIZE_M": -16}})"),
            ":1: /1/BLOCK_SIZE_M: -16 is out of range; write an integer from 0 to 2147483648");
  EXPECT_EQ(
      refusal(R"({"1": {"BLOCK_SIZE_M": "16"}})"),
      ":1: /1/BLOCK_SIZE_M: found the string \"16\"; an integer from 0 to 2147483648 is expected");
  EXPECT_EQ(refusal("{\"1\": {\"BLOCK_SIZE_M\": 16},\n\"1\": {\"BLOCK_SIZE_M\": 32}}"),
            ":2: duplicate key \"1\" in the top object; keep one of the two");
  EXPECT_EQ(refusal(R"({"1": {"BLOCK_SIZE_M": NaN}})"),
            ":1:24: NaN is no JSON number; write a finite number or null");
}

TEST_F(TableFile, RefusesKeysThatAreAlmostBatchSizes) {
  const std::string range =
      " is out of range or has leading zeros; write a plain number from 1 to 2147483648";
  EXPECT_EQ(refusal(R"({"0": {"BLOCK_SIZE_M": 16}})"), ":1: /0: the batch size \"0\"" + range);
  EXPECT_EQ(refusal(R"({"016": {"BLOCK_SIZE_M": 16}})"),
            ":1: /016: the batch size \"016\"" + range);
  EXPECT_EQ(refusal(R"({"99999999999999999999": {"BLOCK_SIZE_M": 16}})"),
            ":1: /99999999999999999999: the batch size \"99999999999999999999\"" + range);
  const std::string neither =
      " is neither a batch size nor metadata; a batch size is a plain decimal key with an object, "
      "metadata a word with "
      "a value";
  EXPECT_EQ(refusal(R"({"-16": {"BLOCK_SIZE_M": 16}})"), ":1: /-16: \"-16\"" + neither);
  EXPECT_EQ(refusal(R"({"1O24": {"BLOCK_SIZE_M": 16}})"), ":1: /1O24: \"1O24\"" + neither);
  EXPECT_EQ(refusal(R"({" 16": 1, "16": {"BLOCK_SIZE_M": 16}})"), ":1: / 16: \" 16\"" + neither);
}

// Entries that tell their key by their value.
ConfigTable table_of(const std::vector<std::int64_t>& keys) {
  ConfigTable table;
  for (const auto key : keys) table.entries[key] = {{{"BLOCK_SIZE_M", key}}};
  return table;
}

TEST_F(TableFile, RefusesASlipOfAKeyThatIsComparedAndKeepsAllOthers) {
  EXPECT_EQ(
      refusal(R"({"1": {"BLOCK_SIZE_M": 16},
"hiden_size": 256})"),
      ":2: /hiden_size: the metadata key \"hiden_size\" is compared with nothing; did you mean "
      "\"hidden_size\"?");
  for (const char* slip : {"Scheme", "topk", "group_sizes", "devise"}) {
    EXPECT_NE(refusal("{\"1\": {\"BLOCK_SIZE_M\": 16}, \"" + std::string(slip) + "\": 1}"),
              "accepted")
        << slip;
  }
  // Those of engines, and those that tune writes.
  for (const char* other :
       {"triton_version", "device_key", "moegauge_version", "date", "routing", "inputs", "cache",
        "launch", "seed", "min_win", "result", "comment", "gpu", "author"}) {
    EXPECT_EQ(refusal("{\"1\": {\"BLOCK_SIZE_M\": 16}, \"" + std::string(other) + "\": \"x\"}"),
              "accepted")
        << other;
  }
}

TEST(Choose, TakesTheNearestKeyAndTheSmallerOfTwo) {
  const auto table = table_of({1, 2, 16, 24, 512, 1024});
  for (const auto& [tokens, key] : std::map<std::int64_t, std::int64_t>{{1, 1},
                                                                        {2, 2},
                                                                        {3, 2},
                                                                        {9, 2},
                                                                        {10, 16},
                                                                        {20, 16},
                                                                        {21, 24},
                                                                        {268, 24},
                                                                        {269, 512},
                                                                        {768, 512},
                                                                        {769, 1024}}) {
    const auto choice = choose(table, tokens);
    EXPECT_EQ(choice.key, key) << tokens;
    EXPECT_EQ(choice.config.values.at("BLOCK_SIZE_M"), key) << tokens;
  }
}

TEST(Choose, MarksWhatLiesBeyondHalfTheFirstOrTwiceTheLastKey) {
  const auto table = table_of({64, 8192});
  EXPECT_TRUE(choose(table, 0).extrapolated);
  EXPECT_TRUE(choose(table, 31).extrapolated);
  EXPECT_FALSE(choose(table, 32).extrapolated);
  EXPECT_FALSE(choose(table, 16384).extrapolated);
  EXPECT_TRUE(choose(table, 16385).extrapolated);
  // An odd first key: half of 3 is 1.5, so 1 is below it and 2 is not.
  EXPECT_TRUE(choose(table_of({3}), 1).extrapolated);
  EXPECT_FALSE(choose(table_of({3}), 2).extrapolated);
  EXPECT_FALSE(choose(table_of({1}), 1).extrapolated);
}

TEST_F(TableFile, WarnsWhereItsOrderWouldMakeAnEngineAnswerOtherwise) {
  const std::string entry = R"(": {"BLOCK_SIZE_M": 16})";
  EXPECT_TRUE(load("{\"1" + entry + ",\"2" + entry + ",\"4" + entry + "}").warnings.empty());
  EXPECT_EQ(
      load("{\"4" + entry + ",\"1" + entry + ",\"2" + entry + "}").warnings,
      (std::vector<std::string>{
          "at M = 3 the file's order makes an engine use 4; here ties go to the smaller key, 2"}));
  // 1 and 2 have no batch size halfway between them.
  EXPECT_TRUE(load("{\"2" + entry + ",\"1" + entry + "}").warnings.empty());
}

// An engine's own rule (nearest key, ties to the first in the file), written out as it states it.
std::int64_t engine_choice(const std::vector<std::int64_t>& keys_in_file_order,
                           std::int64_t tokens) {
  std::int64_t best = keys_in_file_order.front();
  for (const auto key : keys_in_file_order) {
    if (std::abs(key - tokens) < std::abs(best - tokens)) best = key;
  }
  return best;
}

TEST_F(TableFile, WarnsExactlyWhereTheTwoRulesDiffer) {
  std::vector<std::int64_t> keys = {3840, 1792, 512, 3072,
                                    2048, 1280, 768, 1};  // an order seen in the field
  std::string text = "{";
  for (const auto key : keys) {
    text += (text.size() > 1 ? ",\"" : "\"") + std::to_string(key) + R"(": {"BLOCK_SIZE_M": 16})";
  }
  const auto table = load(text + "}");
  std::size_t differences = 0;
  for (std::int64_t tokens = 1; tokens <= 4096; ++tokens) {
    differences += choose(table, tokens).key != engine_choice(keys, tokens);
  }
  EXPECT_GT(differences, 0u);
  EXPECT_EQ(table.warnings.size(), differences);
}

TEST(ConfigName, GoesBothWays) {
  const ConfigFileName block = {.experts = 128,
                                .intermediate_size = 768,
                                .device_name = "NVIDIA_H200",
                                .dtype = "fp8_w8a8",
                                .block_shape = {{128, 128}}};
  const std::string text =
      "E=128,N=768,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128,128].json";
  EXPECT_EQ(to_string(block), text);
  EXPECT_EQ(parse_config_file_name(text), block);
  const ConfigFileName plain = {
      .experts = 8, .intermediate_size = 14336, .device_name = "AMD_Instinct_MI300X"};
  EXPECT_EQ(to_string(plain), "E=8,N=14336,device_name=AMD_Instinct_MI300X.json");
  EXPECT_EQ(parse_config_file_name(to_string(plain)), plain);
  // A processor's name may hold commas and brackets.
  const ConfigFileName odd = {.experts = 1,
                              .intermediate_size = 2,
                              .device_name = "Intel(R)_Xeon(R),_rev_[1,2]",
                              .dtype = "mxfp8"};
  EXPECT_EQ(parse_config_file_name(to_string(odd)), odd);
}

TEST(ConfigName, IsNothingWhereItIsMalformed) {
  for (const auto* text :
       {"", "E=1.json", "E=1,N=2.json", "E=1,N=2,device_name=.json", "E=1,N=2,device_name=x",
        "E=01,N=2,device_name=x.json", "E=-1,N=2,device_name=x.json", "E=1,N=2x,device_name=x.json",
        "E=1,N=2,device_name=x,block_shape=[128].json",
        "E=1,N=2,device_name=x,block_shape=[128,a].json",
        "E=1,N=2,device_name=x,block_shape=128,128.json", "quick.json"}) {
    EXPECT_FALSE(parse_config_file_name(text)) << text;
  }
}

TEST(DeviceName, IsSpeltAsEnginesSpellIt) {
  EXPECT_EQ(normalized_device_name("AMD Instinct MI300X"), "AMD_Instinct_MI300X");
  EXPECT_EQ(normalized_device_name("NVIDIA H100 80GB HBM3"), "NVIDIA_H100_80GB_HBM3");
  EXPECT_EQ(normalized_device_name("a / b"), "a_b");
  EXPECT_EQ(normalized_device_name("NVIDIA H200"), "NVIDIA_H200");
  EXPECT_EQ(normalized_device_name("NVIDIA H200 NVL"), "NVIDIA_H200");
  EXPECT_EQ(normalized_device_name("NVIDIA GH200 480GB"), "NVIDIA_GH200_480GB");
}

Problem qwen_rank() {
  Problem problem;
  problem.layer.experts = 128;
  problem.layer.top_k = 8;
  problem.layer.hidden_size = 2048;
  problem.layer.intermediate_size = 384;
  problem.scheme = make_scheme("fp8_block");
  return problem;
}

Device device_named(const std::string& name) {
  Device device;
  device.name = name;
  return device;
}

TEST(ConfigName, OfALayerHasLocalExpertsAndTrueWidth) {
  EXPECT_EQ(config_file_name(qwen_rank().layer, *qwen_rank().scheme, "NVIDIA H200"),
            "E=128,N=384,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128,128].json");
  Layer half = qwen_rank().layer;
  half.expert_map.assign(128, -1);
  for (int e = 0; e < 64; ++e) half.expert_map[static_cast<std::size_t>(e)] = e;
  EXPECT_EQ(config_file_name(half, *qwen_rank().scheme, "x"),
            "E=64,N=384,device_name=x,dtype=fp8_w8a8,block_shape=[128,128].json");
}

std::string metadata_refusal(const std::map<std::string, std::string>& metadata) {
  try {
    check_table({.file = "t.json", .metadata = metadata}, qwen_rank(), device_named("cpu"));
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Metadata, RefusesAFileOfAnotherLayer) {
  EXPECT_EQ(metadata_refusal({{"scheme", "fp8_block"},
                              {"hidden_size", "2048"},
                              {"top_k", "8"},
                              {"group_size", "128"}}),
            "accepted");
  EXPECT_EQ(metadata_refusal({{"scheme", "fp8_ptpc"}}),
            "t.json: /scheme: tuned for scheme \"fp8_ptpc\"; this layer has \"fp8_block\"");
  EXPECT_EQ(metadata_refusal({{"hidden_size", "4096"}}),
            "t.json: /hidden_size: tuned for hidden_size \"4096\"; this layer has \"2048\"");
  EXPECT_EQ(metadata_refusal({{"top_k", "6"}}),
            "t.json: /top_k: tuned for top_k \"6\"; this layer has \"8\"");
  EXPECT_EQ(metadata_refusal({{"group_size", "32"}}),
            "t.json: /group_size: tuned for group_size \"32\"; this layer has \"128\"");
}

// The kernels of a device that has FP8 in one flavour serve both, and weights that were MXFP8 once.
TEST(Metadata, OfAFileServesEveryFlavourOfItsScheme) {
  const ConfigTable table = {.metadata = {{"scheme", "fp8_block"}, {"group_size", "128"}}};
  Problem problem = qwen_rank();
  for (const char* scheme :
       {"fp8_block", "fp8_block_fnuz", "fp8_block_fnuz224", "fp8_block_frommx_fnuz"}) {
    problem.scheme = make_scheme(scheme);
    EXPECT_TRUE(check_table(table, problem, device_named("gfx942")).empty()) << scheme;
  }
  EXPECT_EQ(make_scheme("fp8_tensor_static_fnuz224")->config_scheme(), "fp8_tensor_static");
  EXPECT_EQ(make_scheme("w4a16_g32_zp")->config_scheme(), "w4a16_g32_zp");
}

TEST(Metadata, OfAnotherDeviceOrCompilerIsStale) {
  const ConfigTable table = {.metadata = {{"device", "NVIDIA H200 NVL"},
                                          {"driver", "550.1"},
                                          {"compiler", "12.4"},
                                          {"date", "2026-01-01"},
                                          {"triton_version", "3.6.0"}}};
  EXPECT_TRUE(check_table(table, qwen_rank(), device_named("NVIDIA_H200")).empty());
  EXPECT_EQ(
      check_table(table, qwen_rank(), device_named("NVIDIA_L40S"),
                  {{"driver", "560.2"}, {"compiler", "12.4"}}),
      (std::vector<std::string>{"device: file has \"NVIDIA H200 NVL\", this run \"NVIDIA_L40S\"",
                                "driver: file has \"550.1\", this run \"560.2\""}));
}

std::string name_refusal(const std::string& file) {
  try {
    check_table({.file = file}, qwen_rank(), device_named("NVIDIA_H200"));
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

// The layer: 128 experts, N 384, fp8_block.
TEST(TableName, OfAnotherLayerIsRefused) {
  const std::string right =
      "E=128,N=384,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128,128].json";
  EXPECT_EQ(name_refusal("x/" + right), "accepted");
  EXPECT_EQ(name_refusal("mine.json"), "accepted") << "a name of no form promises nothing";
  for (const char* wrong :
       {"E=64,N=384,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128,128].json",
        "E=128,N=768,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128,128].json",
        "E=128,N=384,device_name=NVIDIA_H200,dtype=int8_w8a8,block_shape=[128,128].json",
        "E=128,N=384,device_name=NVIDIA_H200.json",
        "E=128,N=384,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[64,128].json"}) {
    EXPECT_EQ(name_refusal(wrong), std::string(wrong) +
                                       ": it is tuned for another layer; this one's files are "
                                       "called " +
                                       right);
  }
}

TEST(TableName, OfAnotherDeviceIsStale) {
  const ConfigTable table = {
      .file = "E=128,N=384,device_name=AMD_MI300X,dtype=fp8_w8a8,block_shape=[128,128].json"};
  EXPECT_EQ(check_table(table, qwen_rank(), device_named("NVIDIA_H200")),
            std::vector<std::string>{"device: file has \"AMD_MI300X\", this run \"NVIDIA_H200\""});
}

TEST(TableName, OfADeviceClassIsNotStaleOnADeviceOfIt) {
  Device device = device_named("Some_CPU");
  device.tuned_class = "CPU_avx2";
  const ConfigTable table = {
      .file = "E=128,N=384,device_name=CPU_avx2,dtype=fp8_w8a8,block_shape=[128,128].json"};
  EXPECT_TRUE(check_table(table, qwen_rank(), device).empty());
}

// Engines' own files are another project's data and not in this repository.
TEST(FieldTables, AllLoad) {
  const char* named = std::getenv("MOEGAUGE_ENGINE_CONFIGS");
  const fs::path folder = named != nullptr ? named : "../shared/data/vllm_configs";
  if (!fs::is_directory(folder)) {
    GTEST_SKIP() << "no folder " << folder
                 << "; set MOEGAUGE_ENGINE_CONFIGS to an engine's folder of tuned configs";
  }
  std::size_t files = 0, out_of_order = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    ++files;
    const std::string name = entry.path().filename().string();
    const auto parsed = parse_config_file_name(name);
    ASSERT_TRUE(parsed) << name;
    EXPECT_EQ(to_string(*parsed), name);
    const auto table = load_config_table(entry.path());
    out_of_order += !table.warnings.empty();
    for (const auto& [key, config] : table.entries) {
      EXPECT_EQ(choose(table, key).key, key) << name;
      EXPECT_GE(config.values.size(), 3u) << name;
    }
  }
  EXPECT_GT(files, 0u) << folder;
  RecordProperty("files", static_cast<int>(files));
  RecordProperty("files_with_order_warnings", static_cast<int>(out_of_order));
}

}  // namespace
}  // namespace moegauge
