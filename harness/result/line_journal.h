// Append-only files of lines that a killed process leaves for the next one.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace moegauge {

// A header that says of which run it is, in lines that a message can name one of, then a line per
// entry, written with one write() and synced. A cut last line is dropped when reading.
class LineJournal {
 public:
  struct Line {
    std::string where;  // FILE:NUMBER
    std::string text;
  };
  // Creates or, with `resume`, continues `file`, whose schema and header must match; `done` gets
  // the lines that it holds. Without `resume` a journal that is there is set aside as FILE.old.
  // Throws InputError, also where another process has the file open as its journal.
  static LineJournal open(const std::filesystem::path& file, const std::string& schema,
                          const std::string& header, bool resume, std::vector<Line>& done);
  LineJournal(LineJournal&&) noexcept;
  LineJournal& operator=(LineJournal&&) noexcept;
  ~LineJournal();
  // `line` has no end of line in it. Throws InputError.
  void append(std::string_view line);

 private:
  LineJournal() = default;
  int fd_ = -1;
  std::filesystem::path file_;
};

}  // namespace moegauge
