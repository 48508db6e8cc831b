// `moegauge.result/1` files and their journals. Strict JSON, never NaN or Infinity; written to a
// temporary file in the same folder, synced, renamed: a reader sees the old file or the whole new
// one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

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

// Append-only: a header that says of which run it is, in lines that a message can name one of, then
// a line per finished case, written with one write() and synced. A cut last line is dropped when
// reading.
class Journal {
 public:
  // Creates or, with `resume`, continues `file`, whose header must match; `done` gets what it
  // holds. Without `resume` a journal that is there is set aside as FILE.old. Throws InputError,
  // also where another process has the file open as its journal.
  static Journal open(const std::filesystem::path& file, const std::string& header, bool resume,
                      std::vector<CaseRecord>& done);
  Journal(Journal&&) noexcept;
  Journal& operator=(Journal&&) noexcept;
  ~Journal();
  void append(const CaseRecord& record);

 private:
  Journal() = default;
  int fd_ = -1;
  std::filesystem::path file_;
};

}  // namespace moegauge
