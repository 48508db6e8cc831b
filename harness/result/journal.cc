// Journals of cases: what a killed run leaves for --resume.
#include <cstddef>
#include <map>
#include <utility>

#include "harness/json/document.h"
#include "harness/result/result_io.h"

namespace moegauge {

Journal Journal::open(const std::filesystem::path& file, const std::string& header, bool resume,
                      std::vector<CaseRecord>& done) {
  std::vector<LineJournal::Line> lines;
  Journal journal(LineJournal::open(file, "moegauge.journal/1", header, resume, lines));
  done.clear();
  std::map<std::string, std::size_t> places;
  for (const auto& [where, text] : lines) {
    CaseRecord record = case_from_json(JsonDocument::parse(text, where).root(), where);
    // A case that was written again counts with its last record, at its first place.
    const auto [place, fresh] = places.emplace(record.id(), done.size());
    if (fresh) {
      done.push_back(std::move(record));
    } else {
      done[place->second] = std::move(record);
    }
  }
  return journal;
}

void Journal::append(const CaseRecord& record) { lines_.append(case_to_line(record)); }

}  // namespace moegauge
