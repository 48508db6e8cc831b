#include "kernels/mutants/mutants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <set>
#include <stdexcept>
#include <tuple>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/layer_testing.h"

namespace moegauge {
namespace {

using namespace testing_support;

const Backend& mutant(std::string_view name) {
  for (const Backend* backend : mutant_backends()) {
    if (backend->name() == name) return *backend;
  }
  throw std::runtime_error("no mutant " + std::string(name));
}

Problem problem(std::string_view scheme) {
  return {{.experts = 4, .top_k = 2, .hidden_size = 320, .intermediate_size = 192},
          std::shared_ptr<const Scheme>(make_scheme(scheme)),
          9};
}

struct Outcome {
  Numerics numerics;
  std::vector<std::uint16_t> first, second;  // of two runs
};

Outcome run_twice(const Backend& backend, const Problem& p, const ExpertSource& experts,
                  const TestInputs& in) {
  auto layer = backend.load(p, experts, 1);
  if (!layer) throw std::runtime_error(layer.error().sentence);
  auto plan = (*layer)->plan(in.tokens, {}, 1);
  if (!plan) throw std::runtime_error(plan.error().sentence);
  Outcome o = {(*plan)->identity().numerics, std::vector<std::uint16_t>(in.x.size()), {}};
  o.second = o.first;
  EXPECT_FALSE((*plan)->set_inputs(0, in.view()));
  EXPECT_FALSE((*plan)->poison());
  for (auto* y : {&o.first, &o.second}) {
    EXPECT_TRUE((*plan)->run({.calls = 1}).has_value());
    EXPECT_FALSE((*plan)->fetch(0, *y));
  }
  return o;
}

// Families that the cpu backend serves.
std::vector<std::string_view> served_families() {
  std::vector<std::string_view> names;
  for (const std::string_view name : scheme_names()) {
    if (!cpu_backend().refuses(problem(name))) names.push_back(name);
  }
  return names;
}

class Mutants : public testing::TestWithParam<std::tuple<std::string_view, std::string_view>> {};

INSTANTIATE_TEST_SUITE_P(Results, Mutants,
                         testing::Combine(testing::ValuesIn(served_families()),
                                          testing::Values("zeros", "stale", "dropped_k_tail",
                                                          "swapped_gate_up", "wrong_expert",
                                                          "doubled_router_weight", "shifted_scale",
                                                          "dropped_token", "bad_row", "nan",
                                                          "nondeterministic", "weight_set")),
                         [](const auto& param) {
                           return std::string(std::get<0>(param.param)) + "_" +
                                  std::string(std::get<1>(param.param));
                         });

TEST_P(Mutants, AreOutsideTheLimitsInOneOfTwoRunsWhereTheirKernelIsWithin) {
  const Problem p = problem(std::get<0>(GetParam()));
  const Backend& backend = mutant("mutant:" + std::string(std::get<1>(GetParam())));
  if (backend.refuses(p)) {
    EXPECT_EQ(backend.name(), "mutant:shifted_scale");
    const OperandTraits w = p.scheme->traits().weight;
    EXPECT_TRUE(w.scale == ScaleKind::none || w.unit == (ScaleUnit{0, 0}));
    GTEST_SKIP() << backend.refuses(p)->sentence;
  }
  const RandomExperts experts(p.layer, p.scheme, 3);
  const TestInputs in = random_inputs(p.layer, 9, 11);
  const Outcome right = run_twice(cpu_backend(), p, experts, in);
  const Outcome wrong = run_twice(backend, p, experts, in);
  const auto truth = plain_layer(p.layer, *p.scheme, right.numerics, experts, in);
  const ErrorLimits limits = p.scheme->error_limits(p.layer.dtype, false).over(in.tokens);
  // Not "<=": a NaN is outside.
  const auto within = [&](const std::vector<std::uint16_t>& y) {
    const Distance d = distance(p.layer, y, truth);
    return d.relative_l2 <= limits.relative_l2 && d.worst_token <= limits.worst_token;
  };
  EXPECT_TRUE(within(right.first) && within(right.second));
  EXPECT_FALSE(within(wrong.first) && within(wrong.second));
}

TEST(Mutants, BadRowIsTheMiddleOneWithTheWrongSignAndNothingElse) {
  const Problem p = problem("bf16");
  const RandomExperts experts(p.layer, p.scheme, 3);
  const TestInputs in = random_inputs(p.layer, 9, 11);
  const Outcome right = run_twice(cpu_backend(), p, experts, in);
  const Outcome wrong = run_twice(mutant("mutant:bad_row"), p, experts, in);
  for (std::size_t i = 0; i < right.first.size(); ++i) {
    const bool bad = i / 320 == 4;
    ASSERT_EQ(wrong.first[i], bad ? right.first[i] ^ 0x8000 : right.first[i]) << i;
  }
}

// Two sets, the middle one is set 1; the two calls of a run are on slot 0 both.
TEST(Mutants, WeightSetIsWrongWithThatSetAlone) {
  const Problem p = problem("bf16");
  const RandomExperts experts(p.layer, p.scheme, 3);
  const TestInputs in = random_inputs(p.layer, 9, 11);
  auto layer = mutant("mutant:weight_set").load(p, experts, 2);
  auto plan = (*layer)->plan(9, {}, 1);
  EXPECT_FALSE((*plan)->set_inputs(0, in.view()));
  const auto y_of = [&](const RunRequest& request) {
    std::vector<std::uint16_t> y(in.x.size());
    EXPECT_TRUE((*plan)->run(request).has_value());
    EXPECT_FALSE((*plan)->fetch(0, y));
    return y;
  };
  const auto right = y_of({.calls = 1}), wrong = y_of({.calls = 1, .first_set = 1});
  EXPECT_EQ(right[4 * 320], wrong[4 * 320] ^ 0x8000);
  EXPECT_EQ(y_of({.calls = 2}), wrong) << "calls go on to the next set";
  EXPECT_EQ(y_of({.calls = 2, .first_set = 1}), right) << "and around";
}

TEST(Mutants, EarlierRowIsTheOneThatOtherInputsLeft) {
  const Problem p = problem("bf16");
  const RandomExperts experts(p.layer, p.scheme, 3);
  auto layer = mutant("mutant:earlier_row").load(p, experts, 1);
  auto plan = (*layer)->plan(9, {}, 1);
  const auto y_of = [&](const TestInputs& in) {
    std::vector<std::uint16_t> y(in.x.size());
    EXPECT_FALSE((*plan)->set_inputs(0, in.view()));
    EXPECT_TRUE((*plan)->run({.calls = 1}).has_value());
    EXPECT_FALSE((*plan)->fetch(0, y));
    return y;
  };
  const auto a = y_of(random_inputs(p.layer, 9, 11)), b = y_of(random_inputs(p.layer, 9, 12));
  const auto row = [](const std::vector<std::uint16_t>& y, std::ptrdiff_t r) {
    return std::vector<std::uint16_t>(y.begin() + r * 320, y.begin() + (r + 1) * 320);
  };
  EXPECT_EQ(row(a, 4), row(b, 4));
  EXPECT_NE(row(a, 3), row(b, 3));
}

TEST(Mutants, UnpoisonedLeavesAnOutputAsItWas) {
  const Problem p = problem("bf16");
  const RandomExperts experts(p.layer, p.scheme, 3);
  const TestInputs in = random_inputs(p.layer, 9, 11);
  auto layer = mutant("mutant:unpoisoned").load(p, experts, 1);
  auto plan = (*layer)->plan(9, {}, 1);
  std::vector<std::uint16_t> before(in.x.size()), after(in.x.size());
  EXPECT_FALSE((*plan)->set_inputs(0, in.view()));
  EXPECT_TRUE((*plan)->run({.calls = 1}).has_value());
  EXPECT_FALSE((*plan)->fetch(0, before));
  EXPECT_FALSE((*plan)->poison());
  EXPECT_FALSE((*plan)->fetch(0, after));
  EXPECT_EQ(before, after);
}

TEST(Mutants, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const Backend* backend : mutant_backends()) {
    EXPECT_THAT(backend->name(), testing::StartsWith("mutant:"));
    names.insert(backend->name());
  }
  EXPECT_EQ(names.size(), mutant_backends().size());
}

class Faults : public testing::Test {
 protected:
  // A plan ready to run.
  std::unique_ptr<Plan> plan(std::string_view name) {
    auto loaded = mutant(name).load(problem_, experts_, 1);
    layer_ = std::move(*loaded);
    auto made = layer_->plan(9, {}, 1);
    return std::move(*made);
  }

 private:
  Problem problem_ = problem("bf16");
  RandomExperts experts_{problem_.layer, problem_.scheme, 3};
  std::unique_ptr<LoadedLayer> layer_;
};

using FaultsDeathTest = Faults;

TEST_F(FaultsDeathTest, EndTheProcessInTheirOwnWay) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(static_cast<void>(plan("mutant:segv")->run({.calls = 1})),
              testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(static_cast<void>(plan("mutant:abort")->run({.calls = 1})),
              testing::KilledBySignal(SIGABRT), "");
  EXPECT_EXIT(static_cast<void>(plan("mutant:exit")->run({.calls = 1})), testing::ExitedWithCode(0),
              "");
}

TEST_F(Faults, OutOfMemoryComesBackAsAValue) {
  const auto seconds = plan("mutant:out_of_memory")->run({.calls = 1});
  ASSERT_FALSE(seconds.has_value());
  EXPECT_EQ(seconds.error().kind, FaultKind::out_of_memory);
}

}  // namespace
}  // namespace moegauge
