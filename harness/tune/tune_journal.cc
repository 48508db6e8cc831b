#include "harness/tune/tune_journal.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "harness/json/cursor.h"
#include "harness/json/document.h"
#include "harness/result/result_io.h"

namespace moegauge {

TuneJournal TuneJournal::open(const std::filesystem::path& file, const std::string& header,
                              bool resume) {
  std::vector<LineJournal::Line> lines;
  TuneJournal journal(LineJournal::open(file, "moegauge.tune_journal/1", header, resume, lines));
  for (const auto& [where, text] : lines) {
    const auto document = JsonDocument::parse(text, where);
    const JsonCursor top(document);
    const std::string tag = top.at("tag").string();
    if (const auto seconds = top.find("seconds")) {
      journal.seconds_[tag] = seconds->number(0, 1e9);
      continue;
    }
    CaseRecord record = case_from_json(top.at("record").json(), where);
    std::string id = record.id();
    journal.done_.insert_or_assign({tag, std::move(id)}, std::move(record));
  }
  return journal;
}

const CaseRecord* TuneJournal::find(const std::string& tag, const std::string& case_id) const {
  const auto found = done_.find({tag, case_id});
  return found == done_.end() ? nullptr : &found->second;
}

std::optional<double> TuneJournal::seconds(const std::string& tag) const {
  const auto found = seconds_.find(tag);
  return found == seconds_.end() ? std::nullopt : std::optional(found->second);
}

void TuneJournal::append_seconds(const std::string& tag, double seconds) {
  lines_.append(nlohmann::ordered_json{{"tag", tag}, {"seconds", seconds}}.dump());
  seconds_[tag] = seconds;
}

void TuneJournal::append(const std::string& tag, const CaseRecord& record) {
  // The record's own serialisation, spliced in as the value that it is.
  lines_.append("{\"tag\":" + nlohmann::ordered_json(tag).dump() +
                ",\"record\":" + case_to_line(record) + "}");
  done_.insert_or_assign({tag, record.id()}, record);
}

}  // namespace moegauge
