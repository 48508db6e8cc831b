#include "harness/commands/table_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/result/record_testing.h"

namespace moegauge {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

CaseRecord beside(double read_gbytes_per_s, const char* backend = "cpu") {
  CaseRecord record = test_measured();
  record.backend = backend;
  std::get<Measured>(record.outcome).telemetry = {{"read_gbytes_per_s", read_gbytes_per_s}};
  return record;
}

TEST(CeilingsWarning, NamesRatesOfOneBackendThatDifferByMoreThanAFifth) {
  Result result;
  result.cases = {beside(23.6), beside(29.5), beside(35.5)};
  EXPECT_THAT(ceilings_warning(result), HasSubstr("cpu read 23.6 to 35.5 GB/s"));
}

TEST(CeilingsWarning, IsSilentWhereTheyAreAlikeOrOfAnotherBackend) {
  Result result;
  result.cases = {beside(30.0), beside(35.5), beside(4500.0, "gpu")};
  EXPECT_THAT(ceilings_warning(result), IsEmpty());
}

}  // namespace
}  // namespace moegauge
