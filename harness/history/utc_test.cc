#include "harness/history/utc.h"

#include <gtest/gtest.h>

namespace moegauge {
namespace {

TEST(Utc, ReadsTimesWithTheirZone) {
  EXPECT_EQ(utc_seconds("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(utc_seconds("1970-01-02T00:00:01+00:00"), 86401);
  EXPECT_EQ(utc_seconds("1970-01-01T02:00:00+02:00"), 0);
  EXPECT_EQ(utc_seconds("1969-12-31T18:30:00-05:30"), 0);
  // date -u -d 2026-11-30T17:10:35 +%s
  EXPECT_EQ(utc_seconds("2026-11-30T17:10:35+00:00"), 1796058635);
}

TEST(Utc, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "2026-11-30", "2026-11-30T17:10:35", "2026-13-30T17:10:35Z", "2026-02-29T17:10:35Z",
        "2026-11-30T25:10:35Z", "2026-11-30 17:10:35Z", "2026-11-30T17:10:35+0100x",
        "2026-11-30T1x:10:35Z", "x026-11-30T17:10:35Z"}) {
    EXPECT_FALSE(utc_seconds(text)) << text;
  }
}

TEST(Utc, WritesWhatItReads) {
  for (const char* text :
       {"1970-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "2028-02-29T12:34:56Z"}) {
    EXPECT_EQ(utc_text(*utc_seconds(text)), text);
  }
  EXPECT_EQ(utc_date(1796058635), "2026-11-30");
}

}  // namespace
}  // namespace moegauge
