#include <gtest/gtest.h>

#include <set>

#include "harness/suite/suite.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

const CaseCoordinates qwen = {
    .model = "qwen3-30b-a3b", .scheme = "fp8_block", .ep = 8, .tokens = 16};

TEST(CaseId, SpellsEveryCoordinate) {
  EXPECT_EQ(case_id(qwen),
            "fused_moe/qwen3-30b-a3b/fp8_block/tp1.ep8/auto/default/uniform/gaussian/cold_weights/"
            "graph/M=16");
}

TEST(CaseId, OfAPointLeavesOutBackendAndConfigOnly) {
  CaseCoordinates rival = qwen;
  rival.backend = "cpu";
  rival.config = "tuned";
  EXPECT_EQ(point_id(qwen),
            "fused_moe/qwen3-30b-a3b/fp8_block/tp1.ep8/uniform/gaussian/cold_weights/graph/M=16");
  EXPECT_EQ(point_id(rival), point_id(qwen));
  EXPECT_NE(case_id(rival), case_id(qwen));
}

TEST(CaseId, ShowsAnInlineConfigByItsHash) {
  CaseCoordinates c = qwen;
  c.config = inline_config({{{"BLOCK_SIZE_M", 16}}});
  EXPECT_EQ(c.config, R"({"BLOCK_SIZE_M":16})");
  EXPECT_EQ(case_id(c),
            "fused_moe/qwen3-30b-a3b/fp8_block/tp1.ep8/auto/#564142d7/uniform/gaussian/"
            "cold_weights/graph/M=16");
}

TEST(CaseId, KeepsPartsApartWhateverTheirBytes) {
  CaseCoordinates path = qwen;
  path.model = "a dir/config.json";
  path.config = "file:x/100%.json";
  EXPECT_EQ(case_id(path),
            "fused_moe/a%20dir%2Fconfig.json/fp8_block/tp1.ep8/auto/file:x%2F100%25.json/uniform/"
            "gaussian/"
            "cold_weights/graph/M=16");
  CaseCoordinates left = qwen, right = qwen;
  left.model = "a/b";
  right.model = "a%2Fb";
  EXPECT_NE(case_id(left), case_id(right));
  left.model = "a\n\x7f";
  EXPECT_NE(case_id(left).find("/a%0A%7F/"), std::string::npos);
}

TEST(ConfigRequest, ReadsTheFourForms) {
  using Kind = ConfigRequest::Kind;
  EXPECT_EQ(parse_config_request("default", "s").kind, Kind::default_config);
  EXPECT_EQ(parse_config_request("tuned", "s").kind, Kind::tuned);
  const auto file = parse_config_request("file:a/b.json", "s");
  EXPECT_EQ(file.kind, Kind::file);
  EXPECT_EQ(file.file, "a/b.json");
  const auto values = parse_config_request(R"({"num_threads": 2, "BLOCK_SIZE_M": 16})", "s");
  EXPECT_EQ(values.kind, Kind::inline_values);
  EXPECT_EQ(inline_config(values.config), R"({"BLOCK_SIZE_M":16,"num_threads":2})");
}

std::string refusal(const std::string& text) {
  try {
    parse_config_request(text, "--config");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ConfigRequest, RefusesTheRest) {
  EXPECT_EQ(refusal("tunned"), "--config: unknown config \"tunned\"; did you mean \"tuned\"?");
  EXPECT_EQ(refusal("fast"),
            "--config: unknown config \"fast\"; write default, tuned, file:PATH or an object");
  EXPECT_EQ(refusal("file:"), "--config: file: without a path; write file:PATH");
  EXPECT_EQ(refusal(R"({"a": 1.5})"),
            "--config:1: /a: found the number 1.5; an integer from 0 to 2147483647 is expected");
}

TEST(ConfigHash, IsFnv1a) {
  // Worked out apart: python3 -c 'h=0xcbf29ce484222325
  // for b in b"{\"BLOCK_SIZE_M\":16}": h=(h^b)*0x100000001b3%2**64
  // print(hex(h))'
  EXPECT_EQ(config_hash8({{{"BLOCK_SIZE_M", 16}}}), "564142d7");
  EXPECT_EQ(config_hash8({}), "08f44b07");
}

}  // namespace
}  // namespace moegauge
