// Lines over file descriptors.
#pragma once

#include <csignal>
#include <string>
#include <string_view>

namespace moegauge {

// Writes the line and its end. False where the reader is gone (SIGPIPE must be ignored or blocked).
bool write_line(int fd, std::string_view line);

// The same into a descriptor that does not block (O_NONBLOCK), for at most `seconds`: a reader that
// hangs must not hang its writer. A line that is not whole cannot be taken back.
enum class Written { whole, reader_gone, too_slow };
Written write_line(int fd, std::string_view line, double seconds);

class LineReader {
 public:
  explicit LineReader(int fd) : fd_(fd) {}

  enum class Event { line, closed, waited, signal };
  // Waits at most `seconds` for a whole line, with the signal mask `mask` in place while it waits
  // (none: the present one). An unfinished line at the end of the file is dropped.
  Event read(std::string& line, double seconds, const sigset_t* mask = nullptr);
  // Waits as long as it takes; false at the end of the file.
  bool read(std::string& line);

 private:
  bool take(std::string& line);

  int fd_;
  std::string buffer_;
};

}  // namespace moegauge
