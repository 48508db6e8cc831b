#include "harness/commands/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/commands/duration.h"
#include "harness/testing/scripted_backend.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class Selection : public ::testing::Test {
 protected:
  Selection() {
    suite_.name = "test";
    for (const std::int64_t tokens : {1, 16}) {
      for (const char* config : {"default", "tuned"}) {
        CaseCoordinates c;
        c.model = "m";
        c.scheme = "bf16";
        c.tokens = tokens;
        c.config = config;
        suite_.cases.push_back(c);
      }
    }
  }
  std::vector<CaseCoordinates> select(const SelectionOptions& options) {
    return select_cases(suite_, options, backends_);
  }

  Suite suite_;
  const ScriptedBackend one_{{.name = "one"}}, two_{{.name = "two"}};
  const std::vector<const Backend*> backends_ = {&one_, &two_};
};

TEST_F(Selection, IsTheWholeSuiteByDefault) { EXPECT_EQ(select({}), suite_.cases); }

TEST_F(Selection, ReplacesBackendsAndKeepsRivalsTogether) {
  const auto cases = select({.backends = {"one", "two"}});
  ASSERT_EQ(cases.size(), 8u);
  EXPECT_EQ(cases[0].backend, "one");
  EXPECT_EQ(cases[1].backend, "two");
  EXPECT_EQ(point_id(cases[0]), point_id(cases[1]));
}

TEST_F(Selection, ReplacesTokens) {
  const auto cases = select({.tokens = "2,4,8"});
  ASSERT_EQ(cases.size(), 6u);
  EXPECT_EQ(cases.front().tokens, 2);
}

TEST_F(Selection, FiltersByGlobAndMayBeEmpty) {
  EXPECT_EQ(select({.filter = "*/tuned/*"}).size(), 2u);
  EXPECT_EQ(select({.filter = "*/M=3"}).size(), 0u);
}

TEST_F(Selection, IteratesOneCaseByItsId) {
  const auto cases = select({.iterate = case_id(suite_.cases[2])});
  ASSERT_EQ(cases.size(), 1u);
  EXPECT_EQ(cases[0], suite_.cases[2]);
}

TEST_F(Selection, AnUnknownIdNamesTheNearest) {
  std::string id = case_id(suite_.cases[2]);
  id.replace(id.find("bf16"), 4, "bf61");
  EXPECT_THAT([&] { select({.iterate = id}); },
              ThrowsMessage<InputError>(HasSubstr("the nearest is " + case_id(suite_.cases[2]))));
}

TEST_F(Selection, AnUnknownBackendNamesTheNearest) {
  EXPECT_THAT([&] { select({.backends = {"onw"}}); },
              ThrowsMessage<InputError>(HasSubstr("did you mean \"one\"")));
  EXPECT_THROW(select({.backends = {"one", "one"}}), InputError);
}

TEST_F(Selection, TakesTheFirstDeviceOfABackend) {
  EXPECT_EQ(select({.device = "two:0"})[0].backend, "two");
  EXPECT_EQ(select({.device = "two"})[0].backend, "two");
  EXPECT_THROW(select({.device = "two:1"}), InputError);
  EXPECT_THROW(select({.device = "three:0"}), InputError);
}

TEST_F(Selection, ShardsCoverTheSuiteOnce) {
  EXPECT_EQ(select({.shard = "1/2"}).size() + select({.shard = "2/2"}).size(), 4u);
  for (const char* wrong : {"0/2", "3/2", "1", "1/", "/2", "1/2x", "-1/2", "a/b"}) {
    EXPECT_THROW(select({.shard = wrong}), InputError) << wrong;
  }
}

TEST(Duration, ReadsWhatPeopleType) {
  EXPECT_EQ(parse_duration("90", "--budget"), 90);
  EXPECT_EQ(parse_duration("90s", "--budget"), 90);
  EXPECT_EQ(parse_duration("20m", "--budget"), 1200);
  EXPECT_EQ(parse_duration("1h30m", "--budget"), 5400);
  EXPECT_EQ(parse_duration("0.5h", "--budget"), 1800);
  for (const char* wrong : {"", "m", "20x", "0", "-5", "1m1h", "1s2s", "nan", "inf", "1e3"}) {
    EXPECT_THROW(parse_duration(wrong, "--budget"), InputError) << wrong;
  }
}

TEST(Duration, IsShownInItsTwoLargestUnits) {
  EXPECT_EQ(duration_text(42.4), "42s");
  EXPECT_EQ(duration_text(185), "3m05s");
  EXPECT_EQ(duration_text(7800), "2h10m");
}

}  // namespace
}  // namespace moegauge
