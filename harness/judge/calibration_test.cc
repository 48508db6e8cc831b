#include "harness/judge/calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "harness/judge/fake_result.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

std::vector<Result> three_processes() {
  std::vector<Result> processes(3, fake_result());
  scale_latency(processes[1].cases[0], std::exp(0.02));
  scale_latency(processes[2].cases[0], std::exp(-0.02));
  return processes;
}

// ln medians 0, 0.02, -0.02 about each other: variance (0 + 4e-4 + 4e-4) / 2. The fake rounds'
// standard error is derived in judge_test.cc.
TEST(Calibration, IsTheSpreadOfTheMediansByDeviceAndCase) {
  const Calibration calibration = calibrate(three_processes());
  const auto& cases = calibration.at("fake device");
  const CaseCalibration& moved = cases.at(fake_result().cases[0].id());
  EXPECT_NEAR(moved.between, 0.02, 1e-9);
  EXPECT_NEAR(moved.within, 0.00145385, 1e-7);
  EXPECT_EQ(moved.processes, 3u);
  EXPECT_NEAR(cases.at(fake_result().cases[1].id()).between, 0, 1e-9);
}

TEST(Calibration, HasNothingToSayOfOneProcess) { EXPECT_TRUE(calibrate({fake_result()}).empty()); }

TEST(Calibration, ComesBackFromItsFileAndIsReplacedCaseByCase) {
  const auto file = std::filesystem::path(testing::TempDir()) / "calibration.json";
  Calibration calibration = calibrate(three_processes());
  merge_into(calibration, {{"fake device", {{fake_result().cases[0].id(), {0.5, 0.1, 9}}}}});
  write_calibration(file, calibration);
  const Calibration read = load_calibration(file);
  EXPECT_EQ(read.at("fake device").size(), 3u);
  EXPECT_EQ(read.at("fake device").at(fake_result().cases[0].id()).processes, 9u);
  EXPECT_EQ(read.at("fake device").at(fake_result().cases[0].id()).between, 0.5);
  std::filesystem::remove(file);
}

TEST(Calibration, OfAnotherKindOfFileIsRefused) {
  const auto file = std::filesystem::path(testing::TempDir()) / "no_calibration.json";
  std::ofstream(file) << R"({"schema": "moegauge.policy/1", "devices": []})";
  EXPECT_THROW(load_calibration(file), InputError);
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace moegauge
