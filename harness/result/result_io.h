// `moegauge.result/1` files and their journals. Strict JSON, never NaN or Infinity; written to a
// temporary file in the same folder, synced, renamed: a reader sees the old file or the whole new
// one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/result/line_journal.h"
#include "harness/result/record.h"

namespace moegauge {

// One case as one line of strict JSON, and back. from_json throws InputError with `where`.
std::string case_to_line(const CaseRecord& record);
CaseRecord case_from_json(const nlohmann::ordered_json& json, const std::string& where);

struct LoadedResult {
  Result result = {};
  // Set when the file was cut: what was recovered and where it stopped, one sentence.
  std::optional<std::string> truncated = {};
};

// Throws InputError if the file is missing, no result at all, or of another major version.
LoadedResult load_result(const std::filesystem::path& file);
LoadedResult read_result(const std::string& text, const std::string& where);
// Throws InputError naming the file and the system's reason (disk full, read-only folder), and
// std::invalid_argument for a record that contradicts itself (a latency that is no finite number).
void write_result(const std::filesystem::path& file, const Result& result);

// A line per finished case, as LineJournal keeps them.
class Journal {
 public:
  // As LineJournal::open; `done` gets the records.
  static Journal open(const std::filesystem::path& file, const std::string& header, bool resume,
                      std::vector<CaseRecord>& done);
  void append(const CaseRecord& record);

 private:
  explicit Journal(LineJournal lines) : lines_(std::move(lines)) {}
  LineJournal lines_;
};

}  // namespace moegauge
