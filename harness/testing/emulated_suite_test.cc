// The accuracy suite on the AMD kernels as the emulator runs them: every case that an architecture
// serves is held against the oracle under the limits that ship, and what it does not serve is the
// list that is written here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "harness/config_table.h"
#include "harness/measure/check.h"
#include "harness/root.h"
#include "harness/suite/suite.h"
#include "harness/workload/workload.h"
#include "kernels/hip/emulator/emulated_backends.h"
#include "reference/oracle.h"

namespace moegauge {
namespace {

class AccuracySuite : public testing::TestWithParam<std::string> {
 protected:
  // One call of a case on fresh, poisoned memory; what is wrong with it, or nothing.
  std::optional<std::string> run(const CaseCoordinates& c, const Problem& problem) {
    const auto workload = make_workload(c, problem, root_, {.seed = 1});
    const CheckInputs inputs =
        make_check_inputs(workload->draw(c.routing, c.tokens, 0), problem.layer, c.tokens, 1);
    auto loaded = backend_->load(problem, workload->experts(), 1);
    if (!loaded) return loaded.error().sentence;
    auto plan = (*loaded)->plan(c.tokens, {}, 1);
    if (!plan) return plan.error().sentence;
    const OwnedInputs& given = inputs.repeated.inputs;
    if (const auto fault = (*plan)->set_inputs(0, given.view())) return fault->sentence;
    if (const auto fault = (*plan)->poison()) return fault->sentence;
    if (const auto ran = (*plan)->run({}); !ran) return ran.error().sentence;
    std::vector<std::uint16_t> y(given.x.size());
    if (const auto fault = (*plan)->fetch(0, y)) return fault->sentence;
    const Truth truth = compute_truth(problem.layer, *problem.scheme, (*plan)->identity().numerics,
                                      workload->experts(), inputs.pool.view(), 1);
    const ErrorReport error = measure_errors(problem.layer, y, truth, inputs.repeated.index);
    if (c.inputs == "exact" && error.implementation.relative_l2 != 0) return "is not exact";
    return broken_limits(error, problem.scheme->error_limits(problem.layer.dtype, false));
  }

  const std::filesystem::path root_ = find_root();
  const std::unique_ptr<const Backend> backend_ = make_emulated_backend(GetParam(), 0);
};

TEST_P(AccuracySuite, IsWithinTheLimitsWhereverItIsServed) {
  const Suite suite = load_suite(root_ / "suites/accuracy.json", root_);
  std::set<std::string> served, refused;
  for (const CaseCoordinates& c : suite.cases) {
    Problem problem = problem_of(c, root_);
    problem.tokens = c.tokens;
    if (backend_->refuses(problem)) {
      refused.insert(c.scheme);
      continue;
    }
    served.insert(c.scheme);
    const auto wrong = run(c, problem);
    EXPECT_FALSE(wrong.has_value()) << case_id(c) << ": " << *wrong;
  }
  std::set<std::string> both;
  std::ranges::set_intersection(served, refused, std::inserter(both, both.end()));
  EXPECT_THAT(both, testing::IsEmpty());
  const auto any = [&](const std::set<std::string>& names, std::string_view start) {
    return std::ranges::any_of(names, [&](const std::string& n) { return n.starts_with(start); });
  };
  for (const char* scheme :
       {"bf16", "fp16", "fp8_block", "fp8_ptpc", "fp8_tensor", "fp8_tensor_static", "w8a8_int8"}) {
    EXPECT_TRUE(served.contains(scheme)) << scheme;
  }
  for (const char* family : {"mxfp8", "mxfp4", "w4a16", "w8a16"})
    EXPECT_FALSE(any(served, family)) << family;
  for (const char* scheme : {"fp8_block_fnuz", "fp8_block_fnuz224", "fp8_ptpc_fnuz",
                             "fp8_ptpc_fnuz224", "fp8_tensor_fnuz", "fp8_tensor_static_fnuz224"}) {
    EXPECT_EQ(served.contains(scheme), GetParam() == "gfx942") << scheme;
  }
}

// Nobody has measured them, and they say so; but each entry names a tile that there is.
TEST(AmdConfigs, ArePerArchitectureUnmeasuredAndServed) {
  const std::filesystem::path root = find_root();
  std::set<std::string> architectures;
  for (const auto& file : std::filesystem::directory_iterator(root / "kernels/hip/configs")) {
    SCOPED_TRACE(file.path().filename());
    const ConfigTable table = load_config_table(file.path());
    const auto name = parse_config_file_name(file.path().filename().string());
    ASSERT_TRUE(name.has_value());
    EXPECT_EQ(table.metadata.at("measured"), "false");
    const std::unique_ptr<const Backend> backend = make_emulated_backend(name->device_name, 0);
    ASSERT_NE(backend, nullptr);
    architectures.insert(name->device_name);
    Problem problem = {{.experts = name->experts,
                        .top_k = std::stoll(table.metadata.at("top_k")),
                        .hidden_size = std::stoll(table.metadata.at("hidden_size")),
                        .intermediate_size = name->intermediate_size},
                       std::shared_ptr<const Scheme>(make_scheme(table.metadata.at("scheme")))};
    for (const auto& [tokens, config] : table.entries) {
      problem.tokens = tokens;
      const auto refusal = backend->refuses_config(problem, config);
      EXPECT_FALSE(refusal.has_value()) << "M=" << tokens << ": " << refusal->sentence;
    }
    EXPECT_NO_THROW(check_table(table, problem, {.name = "any", .arch = name->device_name}));
  }
  EXPECT_THAT(architectures, testing::ElementsAre("gfx1201", "gfx942"));
}

INSTANTIATE_TEST_SUITE_P(Emulated, AccuracySuite, testing::Values("gfx942", "gfx950", "gfx1201"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace moegauge
