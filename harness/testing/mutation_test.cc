// Every way in which a kernel can be wrong that the design lists must come out `inaccurate` under
// the limits that ship, and the honest kernel `ok`: a limit that lets a mutant pass is no limit.
//
// Scale units are spread by 2^u, u in [-2, 2], so that a kernel that reads a neighbour's scale is
// far off. 300 tokens: some rows of the pool of 256 repeat.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "harness/measure/session.h"
#include "harness/testing/command.h"
#include "harness/testing/scripted_backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/mutants/mutants.h"

namespace moegauge {
namespace {

// "[_a|_b][_c]" -> "_a", "_b", "_c".
std::vector<std::string> options_of(std::string_view name) {
  std::vector<std::string> options;
  for (const char c : scheme_options(name)) {
    if (c == '[' || c == '|') options.emplace_back();
    if (c != '[' && c != '|' && c != ']') options.back() += c;
  }
  return options;
}

// Families that the cpu backend serves, by their names without options.
std::vector<std::string> served_families() {
  std::vector<std::string> names;
  for (const std::string_view name : scheme_names()) {
    const std::shared_ptr<const Scheme> scheme = make_scheme(name);
    const Layer layer = {.experts = 8,
                         .top_k = 2,
                         .hidden_size = 512,
                         .intermediate_size = 192,
                         .dtype = scheme->traits().only.value_or(Dtype::bf16)};
    if (!cpu_backend().refuses({layer, scheme, 300})) names.emplace_back(name);
  }
  return names;
}

// Those, and each of their options by itself.
std::vector<std::string> served_schemes() {
  std::vector<std::string> names;
  for (const std::string& family : served_families()) {
    names.push_back(family);
    for (const std::string& option : options_of(family)) {
      if (make_scheme(family + option)->name() != make_scheme(family)->name()) {
        names.push_back(family + option);
      }
    }
  }
  return names;
}

class AnyKernel : public ::testing::Test {
 protected:
  // K = 512 and N = 192: four and one and a half blocks of 128.
  void write_model(Dtype dtype) {
    folder_.write("config.json",
                  R"({"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2,
      "hidden_size": 512, "intermediate_size": 192, "hidden_act": "silu", "torch_dtype": ")" +
                      std::string(dtype == Dtype::bf16 ? "bfloat16" : "float16") + "\"}");
  }

  CaseRecord measure(const std::string& scheme, std::span<const Backend* const> backends,
                     std::int64_t tokens) {
    write_model(make_scheme(scheme)->traits().only.value_or(Dtype::bf16));
    CaseCoordinates c;
    c.model = folder_.path() / "config.json";
    c.scheme = scheme;
    c.tokens = tokens;
    MeasureSettings settings;
    settings.seed = 1;
    settings.unit_spread = 2;
    settings.max_weight_sets = 8;
    settings.stopping.seconds_per_member = 0.01;
    const auto session = make_session({{c}, {}, backends, settings, [](std::size_t, Phase) {}});
    const std::vector<std::size_t> members = {0};
    return session->measure(members).records.at(0).record;
  }

  static std::vector<const Backend*> mutant(const std::string& name) {
    std::vector<const Backend*> found;
    for (const Backend* backend : mutant_backends()) {
      if (backend->name() == "mutant:" + name) found.push_back(backend);
    }
    return found;
  }

  TestFolder folder_;
};

// A mutant and the words of the reason for which it must be caught: by another one it would be
// caught by luck.
struct Mutant {
  std::string name;
  std::string reason;
  friend void PrintTo(const Mutant& mutant, std::ostream* out) { *out << mutant.name; }
};

const char* const wrong = "exceeds";  // an error is above its limit
const char* const not_finite = "not finite";
const char* const not_deterministic = "not deterministic";

class Mutation : public AnyKernel,
                 public ::testing::WithParamInterface<std::tuple<std::string, Mutant>> {};

TEST_P(Mutation, IsInaccurateUnderTheLimitsThatShip) {
  const auto& [scheme, expected] = GetParam();
  const std::string& name = expected.name;
  const auto backends = mutant(name);
  ASSERT_EQ(backends.size(), 1u) << "no mutant is called " << name;
  const CaseRecord record = measure(scheme, backends, 300);
  if (record.status() == Status::unsupported) {
    // The design's list is "for each scheme to which it applies".
    ASSERT_EQ(name, "shifted_scale") << std::get<Unmeasured>(record.outcome).reason;
    const OperandTraits w = make_scheme(scheme)->traits().weight;
    ASSERT_TRUE(w.scale == ScaleKind::none || w.unit == (ScaleUnit{0, 0})) << "has neighbours";
    return;
  }
  ASSERT_EQ(record.status(), Status::inaccurate);
  const auto& outcome = std::get<Unmeasured>(record.outcome);
  EXPECT_THAT(outcome.reason, ::testing::HasSubstr(expected.reason));
  EXPECT_TRUE(outcome.check);
}

INSTANTIATE_TEST_SUITE_P(
    EveryMutant, Mutation,
    ::testing::Combine(
        ::testing::ValuesIn(served_families()),
        ::testing::Values(Mutant{"zeros", wrong},
                          Mutant{"stale", not_finite},  // what was in y is poison
                          Mutant{"dropped_k_tail", wrong}, Mutant{"swapped_gate_up", wrong},
                          Mutant{"wrong_expert", wrong}, Mutant{"doubled_router_weight", wrong},
                          Mutant{"shifted_scale", wrong},
                          Mutant{"dropped_token", wrong},  // its row is the sum of no pairs
                          Mutant{"bad_row", wrong}, Mutant{"nan", not_finite},
                          Mutant{"nondeterministic", wrong},  // against the oracle, in a bad run
                          Mutant{"weight_set", not_deterministic},  // not the set that is checked
                          Mutant{"earlier_row", wrong})),
    [](const auto& test) { return std::get<0>(test.param) + "_" + std::get<1>(test.param).name; });

// Those whose activations are quantised, or are not.
std::vector<std::string> families(bool activations_are_quantised) {
  std::vector<std::string> names = served_families();
  std::erase_if(names, [&](const std::string& name) {
    const bool quantised = make_scheme(name)->traits().activation.scale != ScaleKind::none;
    return quantised != activations_are_quantised;
  });
  return names;
}

// fp16 rounds so finely that its roundings drown in what a right kernel adds.
std::vector<std::string> in_bf16(std::vector<std::string> names) {
  std::erase_if(names, [](const std::string& name) {
    return make_scheme(name)->traits().only == Dtype::fp16;
  });
  return names;
}

// Where activations are quantised, a rounding of what follows the second GEMM hides among those
// that fall into the next code (docs/method.md, Limits).
INSTANTIATE_TEST_SUITE_P(NarrowedRouterWeight, Mutation,
                         ::testing::Combine(::testing::ValuesIn(families(false)),
                                            ::testing::Values(Mutant{"narrowed_router_weight",
                                                                     wrong})),
                         [](const auto& test) { return std::get<0>(test.param); });

// A rounding to the activations' type that a kernel makes and does not declare.
struct Rounding {
  std::string name;
  Numerics computes;
  friend void PrintTo(const Rounding& rounding, std::ostream* out) { *out << rounding.name; }
};

class UndeclaredRounding : public AnyKernel,
                           public ::testing::WithParamInterface<std::tuple<std::string, Rounding>> {
};

TEST_P(UndeclaredRounding, IsInaccurateUnderTheLimitsThatShip) {
  const auto& [scheme, rounding] = GetParam();
  const ScriptedBackend honest({.name = "honest"});
  const std::vector<const Backend*> declares_what_it_does = {&honest};
  EXPECT_EQ(measure(scheme, declares_what_it_does, 64).status(), Status::ok);
  const ScriptedBackend liar({.name = "liar", .computes = rounding.computes});
  const std::vector<const Backend*> rounds_more = {&liar};
  const CaseRecord record = measure(scheme, rounds_more, 64);
  ASSERT_EQ(record.status(), Status::inaccurate);
  EXPECT_THAT(std::get<Unmeasured>(record.outcome).reason, ::testing::HasSubstr(wrong));
}

constexpr Precision narrow = Precision::activation_dtype;
const auto named = [](const auto& test) {
  return std::get<0>(test.param) + "_" + std::get<1>(test.param).name;
};
INSTANTIATE_TEST_SUITE_P(BeforeTheActivation, UndeclaredRounding,
                         ::testing::Combine(::testing::ValuesIn(served_families()),
                                            ::testing::Values(Rounding{"gemm1_out",
                                                                       {.gemm1_out = narrow}})),
                         named);
// Elsewhere the second GEMM's operand is rounded so in any case.
INSTANTIATE_TEST_SUITE_P(BeforeItIsQuantised, UndeclaredRounding,
                         ::testing::Combine(::testing::ValuesIn(families(true)),
                                            ::testing::Values(Rounding{"act_out",
                                                                       {.act_out = narrow}})),
                         named);
INSTANTIATE_TEST_SUITE_P(
    BehindIt, UndeclaredRounding,
    ::testing::Combine(::testing::ValuesIn(in_bf16(families(false))),
                       ::testing::Values(Rounding{"gemm2_out", {.gemm2_out = narrow}},
                                         Rounding{"pair_out", {.pair_out = narrow}})),
    named);

TEST_F(AnyKernel, WhosePoisonFillsNothingIsAnErrorThatNamesTheContract) {
  const CaseRecord record = measure("bf16", mutant("unpoisoned"), 300);
  ASSERT_EQ(record.status(), Status::error);
  EXPECT_THAT(std::get<Unmeasured>(record.outcome).reason,
              ::testing::HasSubstr("breaks the contract of Plan::poison() in kernels/backend.h"));
}

class HonestKernel : public AnyKernel, public ::testing::WithParamInterface<std::string> {};

TEST_P(HonestKernel, IsOkOnTheSameInputs) {
  const CaseRecord record = measure(GetParam(), all_backends(), 300);
  ASSERT_EQ(record.status(), Status::ok) << std::get<Unmeasured>(record.outcome).reason;
  EXPECT_EQ(record.measured()->check.checked.tokens, 256);
  EXPECT_EQ(record.measured()->check.checked.rows, 300);
}

INSTANTIATE_TEST_SUITE_P(EveryScheme, HonestKernel, ::testing::ValuesIn(served_schemes()),
                         [](const auto& test) { return test.param; });

class OneBadRow : public Mutation {};

// One row of 8192 with its sign turned moves the whole by 2 / sqrt(8192) = 0.022 at most, and
// stands out at 2 by itself.
TEST_P(OneBadRow, Of8192IsCaughtByItself) {
  const CaseRecord record = measure(std::get<0>(GetParam()), mutant("bad_row"), 8192);
  ASSERT_EQ(record.status(), Status::inaccurate);
  const ErrorMetrics& error = std::get<Unmeasured>(record.outcome).check->error.implementation;
  EXPECT_NEAR(error.worst_token, 2, 0.05);
  EXPECT_LT(error.relative_l2, 0.1);
}

INSTANTIATE_TEST_SUITE_P(EveryScheme, OneBadRow,
                         ::testing::Combine(::testing::Values("bf16", "fp8_block"),
                                            ::testing::Values(Mutant{"bad_row", wrong})));

}  // namespace
}  // namespace moegauge
