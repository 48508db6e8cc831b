// The suite that ships for accuracy, on the emulated AMD GPUs: each of its cases on each
// architecture as `moegauge run` would check it, against the oracle under the limits that ship.
// Nothing is timed. A third runs with every change, each case on one architecture in turn; the rest
// in a full run.
#include <gtest/gtest.h>

#include <array>
#include <ostream>
#include <string>
#include <vector>

#include "harness/measure/check.h"
#include "harness/suite/suite.h"
#include "harness/workload/problem.h"
#include "harness/workload/workload.h"
#include "kernels/hip/emulator/emulated_backends.h"
#include "reference/oracle.h"

namespace moegauge {

namespace {

struct OnArchitecture {
  CaseCoordinates coordinates;
  std::string architecture;
  friend void PrintTo(const OnArchitecture& on, std::ostream* out) {
    *out << case_id(on.coordinates) << " on " << on.architecture;
  }
};

// One architecture of a case, or the two others.
std::vector<OnArchitecture> cases_of_suite(bool first_of_each) {
  constexpr std::array architectures = {"gfx942", "gfx950", "gfx1201"};
  std::vector<OnArchitecture> found;
  const std::vector<CaseCoordinates> cases = load_suite("suites/accuracy.json", ".").cases;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    // A model has 45 cases, so that without the second term each would meet what the last one met.
    const std::size_t first = (i + i / 45) % architectures.size();
    for (std::size_t a = 0; a < architectures.size(); ++a)
      if ((a == first) == first_of_each) found.push_back({cases[i], architectures[a]});
  }
  return found;
}

// What each architecture has no kernels for, written down apart from them: a case that is refused
// and not listed here is a scheme lost, one that is listed and not refused a line to take out.
bool is_unserved(const std::string& scheme, const std::string& architecture) {
  const auto starts = [&](const char* prefix) { return scheme.starts_with(prefix); };
  if (scheme.find("fnuz") != std::string::npos && architecture != "gfx942") return true;
  return starts("mxfp8") || starts("w4a16") || starts("w8a16") || starts("mxfp4");
}

class EmulatedSuite : public testing::TestWithParam<OnArchitecture> {
 protected:
  void check() {
    const auto& [c, architecture] = GetParam();
    Problem problem = problem_of(c, ".");
    problem.tokens = c.tokens;
    const auto backend = make_emulated_backend(architecture, 0);
    const auto refusal = backend->refuses(problem);
    EXPECT_EQ(refusal.has_value(), is_unserved(c.scheme, architecture))
        << (refusal ? refusal->sentence : "served");
    if (refusal) return;
    const auto workload = make_workload(c, problem, ".", {.seed = 1, .unit_spread = 2});
    auto layer = backend->load(problem, workload->experts(), 1);
    ASSERT_TRUE(layer.has_value()) << layer.error().sentence;
    const auto plan = (*layer)->plan(c.tokens, backend->default_config(problem), 1);
    ASSERT_TRUE(plan.has_value()) << plan.error().sentence;
    const CheckInputs inputs =
        make_check_inputs(workload->draw(c.routing, c.tokens, 0), problem.layer, c.tokens, 1);
    const Numerics& numerics = (*plan)->identity().numerics;
    const Truth truth = compute_truth(problem.layer, *problem.scheme, numerics, workload->experts(),
                                      inputs.pool.view(), 1);
    const bool reduced = numerics.accumulate == Accumulate::reduced;
    const Yardstick yardstick{
        problem.layer, inputs, truth,
        problem.scheme->error_limits(problem.layer.dtype, reduced).over(c.tokens)};
    const auto outcome = check_plan(**plan, yardstick, {.calls = 1}, 1);
    ASSERT_TRUE(outcome.has_value()) << outcome.error().sentence;
    EXPECT_FALSE(outcome->wrong.has_value()) << *outcome->wrong;
    EXPECT_FALSE(outcome->not_comparable.has_value()) << *outcome->not_comparable;
    if (c.inputs == "exact") {
      EXPECT_EQ(outcome->error.implementation.relative_l2, 0);
    }
  }
};

TEST_P(EmulatedSuite, IsAsAccurateAsItMustBe) { check(); }

const auto number = [](const auto& test) {
  return test.param.architecture + "_" + std::to_string(test.index);
};
INSTANTIATE_TEST_SUITE_P(Third, EmulatedSuite, testing::ValuesIn(cases_of_suite(true)), number);
INSTANTIATE_TEST_SUITE_P(Rest, EmulatedSuite, testing::ValuesIn(cases_of_suite(false)), number);

}  // namespace
}  // namespace moegauge
