#include "harness/json/cursor.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "reference/base/input_error.h"

namespace moegauge {
namespace {

const JsonDocument& sample() {
  static const auto document = JsonDocument::parse(
      "{\n\"tokens\": \"16\",\n\"tp\": 3000000000000,\n\"big\": 18446744073709551615,\n"
      "\"list\": [1, 2.5],\n\"on\": 1,\n\"name\": \"a\\u0007b\",\n\"empty\": \"\",\n\"rate\": "
      "-1.5\n}",
      "s.json");
  return document;
}

std::string refusal(const std::function<void(const JsonCursor&)>& read) {
  try {
    read(JsonCursor(sample()));
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(JsonCursor, SaysWhatWasFoundAndWhatIsExpected) {
  EXPECT_EQ(refusal([](auto& c) { c.at("tokens").integer(0, 1048576); }),
            "s.json:2: /tokens: found the string \"16\"; an integer from 0 to 1048576 is expected");
  EXPECT_EQ(refusal([](auto& c) { c.at("list").items()[1].integer(0, 9); }),
            "s.json:5: /list/1: found the number 2.5; an integer from 0 to 9 is expected");
  EXPECT_EQ(refusal([](auto& c) { c.at("on").boolean(); }),
            "s.json:6: /on: found the number 1; true or false is expected");
  EXPECT_EQ(refusal([](auto& c) { c.at("list").members(); }),
            "s.json:5: /list: found an array of 2; an object is expected");
  EXPECT_EQ(refusal([](auto& c) { c.items(); }), "s.json:1: found an object; an array is expected");
}

TEST(JsonCursor, ChecksRanges) {
  EXPECT_EQ(refusal([](auto& c) { c.at("tp").integer(1, 4096); }),
            "s.json:3: /tp: 3000000000000 is out of range; write an integer from 1 to 4096");
  EXPECT_EQ(refusal([](auto& c) { c.at("big").integer(INT64_MIN, INT64_MAX); }),
            "s.json:4: /big: 18446744073709551615 is out of range; write an integer from "
            "-9223372036854775808 to 9223372036854775807");
  EXPECT_EQ(refusal([](auto& c) { EXPECT_EQ(c.at("big").unsigned_integer(), UINT64_MAX); }),
            "accepted");
  EXPECT_EQ(refusal([](auto& c) { c.at("rate").number(0, 1); }),
            "s.json:9: /rate: -1.5 is out of range; write a number from 0.0 to 1.0");
  EXPECT_EQ(refusal([](auto& c) { c.at("rate").number(0, HUGE_VAL); }),
            "s.json:9: /rate: -1.5 is out of range; write a number of at least 0.0");
  EXPECT_EQ(refusal([](auto& c) { EXPECT_EQ(c.at("rate").number(-2, 1), -1.5); }), "accepted");
}

TEST(JsonCursor, NamesUnknownAndMissingKeys) {
  EXPECT_EQ(refusal([](auto& c) {
              c.only_keys({"token", "tp", "big", "list", "on", "name", "empty", "rate"});
            }),
            "s.json:2: /tokens: unknown key \"tokens\"; did you mean \"token\"?");
  EXPECT_EQ(refusal([](auto& c) { c.at("cases"); }),
            "s.json:1: the key \"cases\" is missing; add it");
  EXPECT_EQ(refusal([](auto& c) { EXPECT_FALSE(c.find("cases")); }), "accepted");
}

TEST(JsonCursor, RefusesEmptyAndUnprintableText) {
  EXPECT_EQ(refusal([](auto& c) { c.at("empty").text(); }),
            "s.json:8: /empty: an empty string; write at least one character");
  EXPECT_EQ(refusal([](auto& c) { c.at("name").text(); }),
            "s.json:7: /name: a control character in \"a\\u0007b\"; write printable characters");
}

TEST(JsonCursor, OffersTheNearestOfAFixedChoice) {
  const std::array<std::string, 3> caches = {"cold_weights", "cold", "hot"};
  const nlohmann::ordered_json value = {{"cache", "cold_weight"}};
  const JsonCursor cursor(value, "r.json:7");
  try {
    cursor.at("cache").one_of(caches, "cache");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "r.json:7: /cache: unknown cache \"cold_weight\"; did you mean \"cold_weights\"?");
  }
}

TEST(JsonCursor, EscapesPointers) { EXPECT_EQ(escaped_pointer_token("a/b~c"), "a~1b~0c"); }

}  // namespace
}  // namespace moegauge
