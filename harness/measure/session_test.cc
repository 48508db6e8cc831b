#include "harness/measure/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "harness/testing/command.h"
#include "harness/testing/scripted_backend.h"

namespace moegauge {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Sessions : public ::testing::Test {
 protected:
  Session::Finished measure(const Script& script, const std::string& routing = "uniform") {
    const ScriptedBackend backend(script);
    const std::vector<const Backend*> backends = {&backend};
    CaseCoordinates c = case_;
    c.model = folder_.path() / "config.json";
    c.tokens = 2;
    c.routing = routing;
    const auto session =
        make_session({{c}, {}, backends, settings_, [this](std::size_t, Phase phase) {
                        phases_.push_back(phase);
                      }});
    const std::vector<std::size_t> members = {0};
    return session->measure(members).records.at(0);
  }
  static const Unmeasured& outcome(const Session::Finished& finished) {
    return std::get<Unmeasured>(finished.record.outcome);
  }

  TestFolder folder_;
  CaseCoordinates case_ = [] {
    CaseCoordinates c;
    c.scheme = "bf16";
    return c;
  }();
  MeasureSettings settings_;
  std::vector<Phase> phases_;
};

TEST_F(Sessions, StagesAreMeasuredWhereTheyAreWantedAndTold) {
  const Script told = {.name = "honest", .stage_seconds = {{"gemm1", 2e-6}, {"reduce", 5e-7}}};
  const auto stages = [&](const Script& script) {
    return std::get<Measured>(measure(script).record.outcome).stages_us;
  };
  EXPECT_TRUE(stages(told).empty());
  settings_.stages = true;
  EXPECT_EQ(stages(told), (std::map<std::string, double>{{"gemm1", 2.0}, {"reduce", 0.5}}));
  EXPECT_TRUE(stages({.name = "honest"}).empty());
}

TEST_F(Sessions, ALayerWithoutExactInputsIsUnsupported) {
  case_.scheme = "w4a16_g64_actorder";
  case_.inputs = "exact";
  const auto finished = measure({.name = "honest"});
  EXPECT_EQ(outcome(finished).status, Status::unsupported);
  EXPECT_THAT(outcome(finished).reason, HasSubstr("act_order"));
  EXPECT_FALSE(finished.launched);
}

TEST_F(Sessions, AFaultThatIsNoKernelsIsOfTheInfrastructure) {
  const auto finished = measure({.name = "honest"}, "a trace that was deleted");
  EXPECT_EQ(outcome(finished).status, Status::infrastructure);
  EXPECT_THAT(outcome(finished).reason,
              StartsWith("the harness's own fault while computing the truth: routing: "));
  EXPECT_FALSE(finished.launched);
}

TEST_F(Sessions, AnExceptionOfAKernelIsItsOwn) {
  const auto finished = measure({.name = "throws", .on_run = [](int) -> std::optional<Fault> {
                                   throw std::runtime_error("a kernel threw");
                                 }});
  EXPECT_EQ(outcome(finished).status, Status::error);
  EXPECT_EQ(outcome(finished).reason, "a kernel threw");
  EXPECT_TRUE(finished.launched);
}

// Every launch lies in the phases that a fault is blamed on the kernel in.
TEST_F(Sessions, TheTruthIsComputedOutsideOfTheCheck) {
  std::vector<Phase> at_launch;
  measure({.name = "honest", .on_run = [&](int) -> std::optional<Fault> {
             at_launch.push_back(phases_.back());
             return std::nullopt;
           }});
  EXPECT_THAT(at_launch, ::testing::Each(::testing::AnyOf(Phase::check, Phase::time)));
  EXPECT_THAT(phases_, ::testing::Contains(Phase::truth).Times(3));  // draw, check, check again
}

}  // namespace
}  // namespace moegauge
