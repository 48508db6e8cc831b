#include "harness/result/end_to_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/result/json_fields.h"
#include "harness/result/record_testing.h"
#include "harness/result/result_io.h"
#include "reference/base/input_error.h"
#include "reference/base/text_file.h"

namespace moegauge {
namespace {

using testing::HasSubstr;

EndToEndRow row() {
  return {.op = "eval",
          .model = "m",
          .labels = {{"variant", "b"}, {"zeta", "1"}, {"filter", "none"}, {"task", "t"}},
          .numbers = {{"value", -0.25}, {"stderr", 0.5}},
          .lower_is_better = true,
          .questions = Questions{.right = {0, 5}, .wrong = {3}, .sha256 = "ab"},
          .source = {.file = "f", .lines = {1, 7}, .sha256 = "cd", .tool = "t"},
          .unknown = {{"k", 1}}};
}

EndToEndRow read(const Json& json) { return end_to_end_from_json(JsonCursor(json, "w")); }

std::string refusal(const Json& change) {
  Json json = to_json(row());
  json.merge_patch(change);
  try {
    read(json);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(EndToEndRow, ComesBackFromJson) { EXPECT_EQ(to_json(read(to_json(row()))), to_json(row())); }

TEST(EndToEndRow, KeepsFieldsOfANewerVersion) {
  Json json = to_json(row());
  json["watts"] = 700;
  json["source"]["page"] = 3;
  EXPECT_EQ(to_json(read(json)), json);
}

TEST(EndToEndRow, IsNamedByWhatItIsOfAndNotByItsVariant) {
  EXPECT_EQ(row().point(), "eval/m/task=t/filter=none/zeta=1");
  EXPECT_EQ(row().variant(), "b");
  EXPECT_EQ(EndToEndRow{.op = "serve"}.point(), "serve/-");
}

TEST(EndToEndRow, SaysWhereItIsFrom) {
  EXPECT_EQ(row().source.text(), "f:1,7");
  EXPECT_EQ((EndToEndSource{.file = "f", .pointer = "/a"}.text()), "f: /a");
}

TEST(EndToEndRow, WhatCannotBeIsRefused) {
  EXPECT_THAT(refusal({{"op", "moe"}}), HasSubstr("w: /op: unknown op \"moe\""));
  EXPECT_THAT(refusal({{"numbers", {{"value", nullptr}}}}), HasSubstr("\"value\" is missing"));
  EXPECT_THAT(refusal({{"numbers", {{"stderr", -1}}}}), HasSubstr("/numbers/stderr"));
  EXPECT_THAT(refusal({{"numbers", {{"value", "N/A"}}}}), HasSubstr("/numbers/value"));
  EXPECT_THAT(refusal({{"questions", {{"wrong", {5}}}}}), HasSubstr("5 is both right and wrong"));
  EXPECT_THAT(refusal({{"questions", {{"right", {5, 5}}}}}), HasSubstr("out of order"));
  EXPECT_THAT(refusal({{"source", nullptr}}), HasSubstr("\"source\" is missing"));
}

TEST(EndToEndRow, ThatIsNoNumberIsNotWritten) {
  EndToEndRow bad = row();
  bad.numbers["value"] = NAN;
  EXPECT_THROW(to_json(bad), std::invalid_argument);
}

TEST(EndToEndRows, StandInAResultFileOnceEach) {
  const auto file = test_folder() / "end_to_end_rows.json";
  Result result;
  EndToEndRow other = row();
  other.labels["variant"] = "c";
  result.end_to_end = {row(), other};
  write_result(file, result);
  const std::string text = read_text_file(file);
  const LoadedResult loaded = load_result(file);
  ASSERT_EQ(loaded.result.end_to_end.size(), 2u);
  EXPECT_TRUE(loaded.result.unknown.is_null());
  write_result(file, loaded.result);
  EXPECT_EQ(read_text_file(file), text);
  // A file that was cut in its second row has its first.
  const LoadedResult cut = read_result(text.substr(0, text.find("\"variant\":\"c\"")), "cut");
  EXPECT_EQ(cut.result.end_to_end.size(), 1u);
  EXPECT_THAT(*cut.truncated, HasSubstr("serving and accuracy rows: 1"));

  result.end_to_end = {row(), row()};
  write_result(file, result);
  EXPECT_THROW(load_result(file), InputError);
  std::filesystem::remove(file);
}

TEST(EndToEndRows, AreNotMentionedWhereThereAreNone) {
  const auto file = test_folder() / "no_end_to_end_rows.json";
  write_result(file, {});
  EXPECT_THAT(read_text_file(file), testing::Not(HasSubstr("end_to_end")));
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace moegauge
