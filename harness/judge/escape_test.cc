#include "harness/judge/escape.h"

#include <gtest/gtest.h>

namespace moegauge {
namespace {

TEST(EscapeMarkdown, KeepsANameFromBecomingMarkup) {
  EXPECT_EQ(escape_markdown("a|b*c_d`e<script>"), "a\\|b\\*c\\_d\\`e\\<script\\>");
  EXPECT_EQ(escape_markdown("[text](url)"), "\\[text\\](url)");
  EXPECT_EQ(escape_markdown("two\nlines"), "two lines");
  EXPECT_EQ(escape_markdown("a\\b &amp;"), "a\\\\b \\&amp;");
}

TEST(EscapeMarkdown, NotifiesNobody) {
  EXPECT_EQ(escape_markdown("@team"), "@\xE2\x80\x8Bteam");  // a zero-width space between
}

TEST(MarkdownCode, FencesBackticksByALongerRun) {
  EXPECT_EQ(markdown_code("op/M=1", MarkdownPlace::paragraph), "`op/M=1`");
  EXPECT_EQ(markdown_code("a``b", MarkdownPlace::paragraph), "``` a``b ```");
}

TEST(MarkdownCode, EscapesPipesInTableCellsOnly) {
  EXPECT_EQ(markdown_code("a|b", MarkdownPlace::table_cell), "`a\\|b`");
  EXPECT_EQ(markdown_code("a|b", MarkdownPlace::paragraph), "`a|b`");
}

TEST(EscapeXml, WritesEntitiesAndDropsWhatXmlCannotHold) {
  EXPECT_EQ(escape_xml("<a b=\"c\" d='e'>&"), "&lt;a b=&quot;c&quot; d=&apos;e&apos;&gt;&amp;");
  EXPECT_EQ(escape_xml("x\x01y\nz"), "x\xEF\xBF\xBDy&#10;z");
  EXPECT_EQ(escape_xml("\xEF\xBF\xBE|\xEF\xBF\xBF|\xEF\xBF\xBD"),
            "\xEF\xBF\xBD|\xEF\xBF\xBD|\xEF\xBF\xBD");
  EXPECT_EQ(escape_xml("a\xFF"
                       "b\xC3\xA9"),
            "a\xEF\xBF\xBD"
            "b\xC3\xA9");
}

// The three and five escapes that the runner undoes (actions/toolkit, command.ts).
TEST(EscapeGithub, KeepsACommandOnOneLine) {
  EXPECT_EQ(escape_github_data("50% slower\r\nnext: a,b"), "50%25 slower%0D%0Anext: a,b");
  EXPECT_EQ(escape_github_property("fail: a,b"), "fail%3A a%2Cb");
}

}  // namespace
}  // namespace moegauge
