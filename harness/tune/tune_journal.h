// What a tune that was killed leaves for --resume: every record with the request that it was for,
// and how long each request took, since a search goes by that.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "harness/result/line_journal.h"
#include "harness/result/record.h"

namespace moegauge {

class TuneJournal {
 public:
  // As LineJournal::open.
  static TuneJournal open(const std::filesystem::path& file, const std::string& header,
                          bool resume);

  std::size_t size() const { return done_.size(); }
  // What an earlier run, or this one, measured for a request; null where it has not.
  const CaseRecord* find(const std::string& tag, const std::string& case_id) const;
  // How long a request took that was measured to its end; nothing where none was.
  std::optional<double> seconds(const std::string& tag) const;
  // The last record of a tag and case counts.
  void append(const std::string& tag, const CaseRecord& record);
  void append_seconds(const std::string& tag, double seconds);

 private:
  explicit TuneJournal(LineJournal lines) : lines_(std::move(lines)) {}
  LineJournal lines_;
  std::map<std::pair<std::string, std::string>, CaseRecord> done_;
  std::map<std::string, double> seconds_;
};

}  // namespace moegauge
