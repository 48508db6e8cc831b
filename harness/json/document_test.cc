#include "harness/json/document.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reference/base/input_error.h"

namespace moegauge {
namespace {

std::string refusal(const std::string& text) {
  try {
    JsonDocument::parse(text, "s.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(StrictJson, KeepsValuesAndTheOrderOfKeys) {
  const auto document =
      JsonDocument::parse(R"({"z": [1, -2, 3.5, null, true], "a": {"b": "c"}})", "s.json");
  EXPECT_EQ(document.root().dump(), R"({"z":[1,-2,3.5,null,true],"a":{"b":"c"}})");
}

TEST(StrictJson, NamesLineAndColumnOfASyntaxError) {
  EXPECT_EQ(refusal("{\n  \"a\": 1,\n  \"b\": ]\n}"),
            "s.json:3:8: syntax error while parsing value - unexpected ']'; expected '[', '{', or "
            "a literal");
  EXPECT_EQ(refusal("{\"a\": 1,}"),
            "s.json:1:9: syntax error while parsing object key - unexpected '}'; expected string "
            "literal");
  EXPECT_EQ(refusal("{} {}"),
            "s.json:1:4: syntax error while parsing value - unexpected '{'; expected end of input");
  // The column counts characters, not bytes: e-acute is two bytes.
  EXPECT_EQ(refusal("{\"\xC3\xA9\": ]"),
            "s.json:1:7: syntax error while parsing value - unexpected ']'; expected '[', '{', or "
            "a literal");
}

TEST(StrictJson, SaysWhereACutTextEnds) {
  EXPECT_EQ(refusal("{\"a\": [1,\n2"),
            "s.json:2:2: the text ends in the middle of a value; a whole JSON value is expected");
  EXPECT_EQ(refusal(""), "s.json:1:1: the file is empty; a whole JSON value is expected");
  EXPECT_EQ(refusal(" \n"), "s.json:2:1: the file is empty; a whole JSON value is expected");
}

TEST(StrictJson, RefusesDuplicateKeysAtAnyDepth) {
  EXPECT_EQ(refusal("{\"a\": 1,\n \"a\": 2}"),
            "s.json:2: duplicate key \"a\" in the top object; keep one of the two");
  EXPECT_EQ(refusal("{\"x\": [{}, {\"k\": 1,\n\n \"k\": 2}]}"),
            "s.json:3: duplicate key \"k\" in /x/1; keep one of the two");
  EXPECT_EQ(refusal("{\"a\\u0062\": 1, \"ab\": 2}"),
            "s.json:1: duplicate key \"ab\" in the top object; keep one of the two");
}

TEST(StrictJson, RefusesWhatIsNoJsonNumber) {
  EXPECT_EQ(refusal("{\"a\": NaN}"),
            "s.json:1:7: NaN is no JSON number; write a finite number or null");
  EXPECT_EQ(refusal("[1,\n -Infinity]"),
            "s.json:2:2: -Infinity is no JSON number; write a finite number or null");
  EXPECT_EQ(refusal("[1e999]"),
            "s.json:1:2: the number \"1e999\" overflows a double; write a number within +-1.8e308");
  EXPECT_EQ(refusal("{\"a\": [1, 18446744073709551616]}"),
            "s.json:1: the integer 18446744073709551616 in /a/1 does not fit 64 bits; write a "
            "smaller number");
}

TEST(StrictJson, DoesNotMistakeTheEndOfABadStringForSomethingElse) {
  EXPECT_NE(refusal("[\"nan\n\"]").find("control character"), std::string::npos);
  EXPECT_NE(refusal("[\"a/\n\"]").find("control character"), std::string::npos);
}

TEST(StrictJson, RefusesCommentsBadUtf8AndDepth) {
  EXPECT_EQ(refusal("{\n// why\n}"),
            "s.json:2:1: JSON has no comments; put the words into a \"description\"");
  EXPECT_EQ(refusal("[\"\xC3(\"]").substr(0, 11), "s.json:1:4:");
  EXPECT_NE(refusal("[\"\xC3(\"]").find("ill-formed UTF-8"), std::string::npos);
  EXPECT_NE(refusal("[\"a\nb\"]").find("control character"), std::string::npos);
  EXPECT_EQ(refusal(std::string(64, '[') + std::string(64, ']')), "accepted");
  EXPECT_EQ(refusal(std::string(65, '[')), "s.json:1: nested deeper than 64 levels; flatten it");
  EXPECT_EQ(refusal(std::string(1'000'000, '[')),
            "s.json:1: nested deeper than 64 levels; flatten it");
}

TEST(StrictJson, StaysQuickWithManyKeys) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += (i ? ",\"" : "\"") + std::to_string(i) + "\":1";
  text += ",\"0\":2}";  // a search per key would take minutes
  EXPECT_EQ(refusal(text), "s.json:1: duplicate key \"0\" in the top object; keep one of the two");
}

TEST(StrictJson, FindsTheLineOfAPointer) {
  const auto document =
      JsonDocument::parse("{\n \"a\": [\n  1,\n  {\"b/c\": 2,\n   \"d\": 3}\n ]\n}", "s.json");
  EXPECT_EQ(document.line_of(""), 1u);
  EXPECT_EQ(document.line_of("/a"), 2u);
  EXPECT_EQ(document.line_of("/a/0"), 3u);
  EXPECT_EQ(document.line_of("/a/1"), 4u);
  EXPECT_EQ(document.line_of("/a/1/b~1c"), 4u);
  EXPECT_EQ(document.line_of("/a/1/d"), 5u);
}

TEST(StrictJson, NamesAFileThatCannotBeRead) {
  EXPECT_THROW(
      {
        try {
          JsonDocument::read("no/such/file.json");
        } catch (const InputError& error) {
          EXPECT_STREQ(
              error.what(),
              "no/such/file.json: No such file or directory; give the path of a readable file");
          throw;
        }
      },
      InputError);
  EXPECT_THROW(JsonDocument::read("/"), InputError);
  EXPECT_THROW(JsonDocument::read("/dev/zero"), InputError);  // without end
}

std::string recovered(const std::string& text) {
  const auto cut = parse_cut_json(text, "r.json");
  return (cut.stopped ? "cut at " + *cut.stopped + ": " : "whole: ") + cut.root->dump();
}

TEST(CutJson, KeepsEveryWholeElementOfTopLevelMembers) {
  EXPECT_EQ(recovered(R"({"a": [1, {"b": 2}], "c": 3})"), R"(whole: {"a":[1,{"b":2}],"c":3})");
  EXPECT_EQ(recovered(R"({"a": [{"b": 1}, {"b": 2)"),
            R"(cut at line 1, column 25: {"a":[{"b":1}]})");
  EXPECT_EQ(recovered(R"({"a": [{"b": 1}, {"b": [2], "c": "x)"),
            R"(cut at line 1, column 36: {"a":[{"b":1}]})");
  EXPECT_EQ(recovered(R"({"a": [{"b": 1}, )"), R"(cut at line 1, column 18: {"a":[{"b":1}]})");
  EXPECT_EQ(recovered(R"({"a": "x", "b)"), R"(cut at line 1, column 14: {"a":"x"})");
  EXPECT_EQ(recovered("{"), "cut at line 1, column 2: {}");
  EXPECT_EQ(recovered(""), "cut at line 1, column 1: null");
}

TEST(CutJson, DropsANumberThatMayHaveGoneOn) {
  EXPECT_EQ(recovered(R"({"a": 1, "b": 12)"), R"(cut at line 1, column 17: {"a":1})");
  EXPECT_EQ(recovered(R"({"a": 1, "b": 12 )"), R"(cut at line 1, column 18: {"a":1,"b":12})");
  EXPECT_EQ(recovered(R"({"a": [1, 12)"), R"(cut at line 1, column 13: {"a":[1]})");
  EXPECT_EQ(recovered(R"({"a": 1.)"), R"(cut at line 1, column 9: {})");
}

TEST(CutJson, TakesDamageBeforeTheEndForAnError) {
  EXPECT_THROW(parse_cut_json(R"({"a": [1, }, "b": 2})", "r.json"), InputError);
  EXPECT_THROW(parse_cut_json(R"({"a": 1, "a": 2)", "r.json"), InputError);
}

}  // namespace
}  // namespace moegauge
