// Single ops end to end: the honest kernel is `ok` on every op, field, scheme and class of inputs,
// and every way of being wrong comes out `inaccurate`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "harness/measure/session.h"
#include "harness/testing/command.h"
#include "kernels/mutants/op_mutants.h"
#include "reference/ops/op.h"

namespace moegauge {
namespace {

struct Asked {
  std::string name;
  std::string op, model = "softmax", scheme = "bf16", inputs = "gaussian";
  OpFields fields = {};
  std::int64_t tokens = 300, ep = 1;
};
void PrintTo(const Asked& asked, std::ostream* out) { *out << asked.name; }

class Ops : public ::testing::Test {
 protected:
  Ops() {
    write("softmax", R"("activation": {"kind": "silu_and_mul"},
      "routing": {"rule": "softmax", "renormalize": true})");
    write("grouped", R"("activation": {"kind": "silu_and_mul"}, "shared_experts": 1,
      "routing": {"rule": "grouped_sigmoid", "groups": 4, "top_groups": 2, "correction_bias": true,
                  "renormalize": true, "scaling_factor": 2.5})");
    write("clamped", R"("dtype": "fp16", "gate_up_order": "interleaved",
      "activation": {"kind": "swiglu_clamped", "alpha": 1.702, "beta": 1.0, "limit": 7.0},
      "routing": {"rule": "softmax_after_topk"})");
    write("many", R"("activation": {"kind": "silu_and_mul"}, "routing": {"rule": "softmax"})",
          4096);
    write("gelu", R"("activation": {"kind": "gelu_and_mul"}, "routing": {"rule": "softmax"})");
    write("gelu_tanh",
          R"("activation": {"kind": "gelu_tanh_and_mul"}, "routing": {"rule": "softmax"})");
  }

  // K = 320 and N = 96: ragged against vectors, groups and tiles.
  void write(const std::string& name, const std::string& rest, int experts = 16) {
    folder_.write(name + ".json", R"({"schema": "moegauge.model/1", "name": ")" + name +
                                      R"(", "experts": )" + std::to_string(experts) +
                                      R"(, "top_k": 3, "hidden_size": 320,
                      "moe_intermediate_size": 96, "served_as": ["bf16"], )" +
                                      rest + "}");
  }

  CaseRecord measure(const Asked& asked, std::span<const Backend* const> backends) {
    CaseCoordinates c;
    c.op = asked.op;
    c.model = folder_.path() / (asked.model + ".json");
    c.scheme = asked.scheme;
    c.inputs = asked.inputs;
    c.tokens = asked.tokens;
    c.ep = asked.ep;
    c.op_fields = op_fields_text(asked.fields);
    MeasureSettings settings;
    settings.seed = 1;
    settings.unit_spread = 2;
    settings.max_weight_sets = 4;
    settings.row_seconds = 1e-4;
    settings.stopping.seconds_per_member = 0.01;
    const auto session = make_session({{c}, {}, backends, settings, [](std::size_t, Phase) {}});
    const std::vector<std::size_t> members = {0};
    return session->measure(members).records.at(0).record;
  }

  TestFolder folder_;
};

const std::vector<Asked>& honest_cases() {
  using S = std::string;
  static const std::vector<Asked> cases = {
      {.name = "route_softmax", .op = "route"},
      {.name = "route_grouped", .op = "route", .model = "grouped"},
      {.name = "route_after_topk", .op = "route", .model = "clamped"},
      {.name = "route_all", .op = "route", .model = "gelu"},
      {.name = "route_degenerate", .op = "route", .inputs = "degenerate"},
      {.name = "route_grouped_degenerate",
       .op = "route",
       .model = "grouped",
       .inputs = "degenerate"},
      {.name = "route_all_degenerate", .op = "route", .model = "gelu", .inputs = "degenerate"},
      {.name = "route_shared",
       .op = "route",
       .model = "grouped",
       .fields = {{"shared_experts", S("appended")}}},
      {.name = "route_nothing", .op = "route", .tokens = 0},
      {.name = "align", .op = "align"},
      {.name = "align_many", .op = "align", .fields = {{"block_size", 16}}, .tokens = 8000},
      {.name = "align_blocks", .op = "align", .fields = {{"block_size", 7}}, .ep = 3},
      {.name = "align_skipped",
       .op = "align",
       .fields = {{"block_size", 7}, {"remote_experts", S("skipped")}},
       .ep = 3},
      {.name = "align_of_4096_experts",
       .op = "align",
       .model = "many",
       .fields = {{"block_size", 16}}},
      {.name = "align_of_4096_experts_and_ranks",
       .op = "align",
       .model = "many",
       .fields = {{"block_size", 16}, {"remote_experts", S("skipped")}},
       .tokens = 5000,
       .ep = 8},
      {.name = "route_of_4096_experts", .op = "route", .model = "many"},
      {.name = "align_nothing", .op = "align", .tokens = 0},
      {.name = "quantize_block", .op = "quantize", .scheme = "fp8_block"},
      {.name = "quantize_ptpc", .op = "quantize", .scheme = "fp8_ptpc"},
      {.name = "quantize_ptpc_fnuz", .op = "quantize", .scheme = "fp8_ptpc_fnuz"},
      {.name = "quantize_fnuz224", .op = "quantize", .scheme = "fp8_block_fnuz224"},
      {.name = "quantize_tensor", .op = "quantize", .scheme = "fp8_tensor"},
      {.name = "quantize_static", .op = "quantize", .scheme = "fp8_tensor_static"},
      {.name = "quantize_mxfp8", .op = "quantize", .scheme = "mxfp8"},
      {.name = "quantize_mxfp8_floor", .op = "quantize", .scheme = "mxfp8_floor"},
      {.name = "quantize_int8", .op = "quantize", .scheme = "w8a8_int8"},
      {.name = "quantize_fp16", .op = "quantize", .model = "clamped", .scheme = "fp8_block"},
      {.name = "quantize_degenerate",
       .op = "quantize",
       .scheme = "fp8_block",
       .inputs = "degenerate"},
      {.name = "quantize_mxfp8_degenerate",
       .op = "quantize",
       .scheme = "mxfp8",
       .inputs = "degenerate"},
      {.name = "quantize_nothing", .op = "quantize", .scheme = "fp8_tensor", .tokens = 0},
      {.name = "gemm_sorted", .op = "grouped_gemm"},
      {.name = "gemm_sorted_fp8", .op = "grouped_gemm", .scheme = "fp8_block"},
      {.name = "gemm_down", .op = "grouped_gemm", .fields = {{"gemm", S("down")}}},
      {.name = "gemm_down_fp8",
       .op = "grouped_gemm",
       .scheme = "fp8_block",
       .fields = {{"gemm", S("down")}, {"block_size", 5}}},
      {.name = "gemm_contiguous_fp16",
       .op = "grouped_gemm",
       .model = "clamped",
       .scheme = "fp16",
       .fields = {{"layout", S("contiguous")}}},
      {.name = "gemm_batched",
       .op = "grouped_gemm",
       .scheme = "fp8_block",
       .fields = {{"layout", S("batched")}},
       .tokens = 40},
      {.name = "gemm_of_a_rank",
       .op = "grouped_gemm",
       .fields = {{"layout", S("contiguous")}, {"gemm", S("down")}},
       .tokens = 40,
       .ep = 3},
      {.name = "gemm_of_one_token", .op = "grouped_gemm", .scheme = "fp8_block", .tokens = 1},
      {.name = "gemm_nothing", .op = "grouped_gemm", .tokens = 0},
      {.name = "activation", .op = "activation"},
      {.name = "activation_clamped", .op = "activation", .model = "clamped", .scheme = "fp16"},
      {.name = "activation_gelu", .op = "activation", .model = "gelu"},
      {.name = "activation_tanh", .op = "activation", .model = "gelu_tanh"},
      {.name = "activation_heavy_tail", .op = "activation", .inputs = "heavy_tail"},
      {.name = "reduce", .op = "reduce"},
      {.name = "reduce_fp32", .op = "reduce", .fields = {{"pair_out", S("fp32")}}},
      {.name = "reduce_fp16", .op = "reduce", .model = "clamped", .scheme = "fp16"},
      {.name = "reduce_nothing", .op = "reduce", .tokens = 0},
  };
  return cases;
}

std::string name_of(const ::testing::TestParamInfo<Asked>& test) { return test.param.name; }

class HonestOp : public Ops, public ::testing::WithParamInterface<Asked> {};

TEST_P(HonestOp, IsOk) {
  const CaseRecord record = measure(GetParam(), all_backends());
  ASSERT_EQ(record.status(), Status::ok) << std::get<Unmeasured>(record.outcome).reason;
  EXPECT_EQ(record.measured()->check.checked.rows, GetParam().tokens);
  EXPECT_EQ(record.backend, "cpu");
}

INSTANTIATE_TEST_SUITE_P(EveryOp, HonestOp, ::testing::ValuesIn(honest_cases()), name_of);

class OpMutation : public Ops, public ::testing::WithParamInterface<Asked> {};

TEST_P(OpMutation, IsNeverOk) {
  int applied = 0;
  for (const Backend* backend : op_mutant_backends()) {
    const std::vector<const Backend*> alone = {backend};
    const CaseRecord record = measure(GetParam(), alone);
    if (record.status() == Status::unsupported) continue;
    ++applied;
    const bool broken_contract = backend->name() == "op_mutant:unpoisoned";
    ASSERT_EQ(record.status(), broken_contract ? Status::error : Status::inaccurate)
        << backend->name();
  }
  EXPECT_GE(applied, 5) << "four of every op, and one of its own";
}

INSTANTIATE_TEST_SUITE_P(
    EveryOp, OpMutation,
    ::testing::Values(Asked{.name = "route", .op = "route"},
                      Asked{.name = "route_grouped", .op = "route", .model = "grouped"},
                      Asked{.name = "align", .op = "align", .fields = {{"block_size", 8}}},
                      Asked{.name = "quantize", .op = "quantize", .scheme = "fp8_block"},
                      Asked{.name = "quantize_mxfp8", .op = "quantize", .scheme = "mxfp8"},
                      Asked{.name = "activation", .op = "activation"},
                      Asked{.name = "activation_interleaved",
                            .op = "activation",
                            .model = "clamped",
                            .scheme = "fp16"},
                      Asked{.name = "gemm", .op = "grouped_gemm", .scheme = "fp8_block"},
                      Asked{.name = "gemm_bf16",
                            .op = "grouped_gemm",
                            .fields = {{"layout", std::string("contiguous")}}},
                      Asked{.name = "reduce", .op = "reduce"}),
    name_of);

TEST_F(Ops, AreUnsupportedWhereTheyAreNotDefined) {
  const CaseRecord record = measure({.name = "", .op = "quantize"}, all_backends());
  ASSERT_EQ(record.status(), Status::unsupported);
  EXPECT_THAT(std::get<Unmeasured>(record.outcome).reason,
              ::testing::HasSubstr("the scheme bf16 leaves activations as they are"));
}

}  // namespace
}  // namespace moegauge
