#include "harness/judge/calibration_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace moegauge {
namespace {

using testing::HasSubstr;

const Calibration three = {
    {"a device",
     {{"quiet", {0.004, 0.001, 8}}, {"usual", {0.010, 0.001, 8}}, {"noisy", {0.030, 0.002, 7}}}}};

// The median of 0.4, 1 and 3% is 1%; 3% alone is above twice that.
TEST(CalibrationReport, HasTheNoisiestFirstAndSaysWhichTheyAre) {
  const std::string text = text_report(three);
  EXPECT_LT(text.find("noisy"), text.find("usual"));
  EXPECT_LT(text.find("usual"), text.find("quiet"));
  EXPECT_THAT(text, HasSubstr("  3.00%   0.20%  7  noisy\n"));
  EXPECT_THAT(text, HasSubstr("differ by 1.00% (median of the cases), at most by 3.00%"));
  EXPECT_THAT(text, HasSubstr("the first 1 of the table"));
}

TEST(CalibrationReport, IsTheFilesOwnAsJson) {
  const auto json = json_report(three);
  EXPECT_EQ(json.at("schema"), "moegauge.calibration/1");
  EXPECT_EQ(json.at("devices").at(0).at("cases").at(0).at("processes"), 7);
}

}  // namespace
}  // namespace moegauge
