#include <sstream>

#include "harness/endtoend/samples.h"
#include "harness/json/cursor.h"
#include "harness/json/document.h"
#include "reference/base/input_error.h"

namespace moegauge {

SampleScores read_samples(const std::string& text, const std::string& metric,
                          const std::string& where) {
  SampleScores scores;
  std::stringstream stream(text);
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.empty()) continue;
    const JsonDocument document = JsonDocument::parse(line, where + ":" + std::to_string(number));
    const JsonCursor top(document);
    const auto filter = top.find("filter");
    const auto key = std::pair(top.at("doc_id").integer(0, INT64_MAX),
                               filter && filter->is_string() ? filter->string() : "none");
    if (!scores.emplace(key, top.at(metric).number(0, 1) > 0.5).second) {
      top.at("doc_id").fail("question " + std::to_string(key.first) + " appears twice",
                            "one line per question and filter");
    }
  }
  if (scores.empty()) throw InputError(where, "no question in it", "a --log_samples file");
  return scores;
}

Discordant discordant_of(const SampleScores& now, const SampleScores& then,
                         const std::string& filter, const std::string& where) {
  Discordant pairs;
  std::size_t questions = 0, common = 0;
  for (const auto& [key, right] : now) {
    if (key.second != filter) continue;
    ++questions;
    const auto before = then.find(key);
    if (before == then.end()) continue;
    ++common;
    pairs.only_new += right && !before->second;
    pairs.only_old += !right && before->second;
  }
  if (common == 0 || common != questions) {
    throw InputError(where,
                     "of " + std::to_string(questions) + " questions under the filter " + filter +
                         " the other run has " + std::to_string(common),
                     "a paired test needs the same questions on both sides");
  }
  return pairs;
}

}  // namespace moegauge
