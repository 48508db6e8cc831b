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
    CaseRecord record = case_from_json(top.at("record").json(), where);
    std::string id = record.id();
    journal.done_.insert_or_assign({top.at("tag").string(), std::move(id)}, std::move(record));
  }
  return journal;
}

const CaseRecord* TuneJournal::find(const std::string& tag, const std::string& case_id) const {
  const auto found = done_.find({tag, case_id});
  return found == done_.end() ? nullptr : &found->second;
}

void TuneJournal::append(const std::string& tag, const CaseRecord& record) {
  // The record's own serialisation, spliced in as the value that it is.
  lines_.append("{\"tag\":" + nlohmann::ordered_json(tag).dump() +
                ",\"record\":" + case_to_line(record) + "}");
  done_.insert_or_assign({tag, record.id()}, record);
}

}  // namespace moegauge
