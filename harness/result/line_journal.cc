#include "harness/result/line_journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "harness/json/cursor.h"
#include "harness/json/document.h"
#include "harness/json/nearest.h"
#include "harness/result/json_fields.h"
#include "harness/result/safe_file.h"
#include "reference/base/input_error.h"
#include "reference/base/text_file.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

std::string header_line(const std::string& schema, const std::string& header) {
  Json json;
  json["schema"] = schema;
  json["header"] = header;
  return to_line(json) + "\n";
}

[[noreturn]] void fail(const fs::path& file, const std::string& doing, int reason) {
  throw InputError(file.string(), doing + ": " + std::strerror(reason),
                   "give a writable place with room");
}

// The lock is the process's: a worker that outlives its killed parent does not hold it. (It would
// be lost if this process opened and closed the file elsewhere, so it is read through this
// descriptor.)
int open_locked(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND | O_NONBLOCK, 0666);
  if (fd < 0) fail(file, "cannot open the journal", errno);
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (::fcntl(fd, F_SETLK, &lock) != 0 && (errno == EACCES || errno == EAGAIN)) {
    ::close(fd);
    throw InputError(file.string(), "another run is writing this journal",
                     "wait for it or give another --out");
  }
  return fd;
}

// The first lines in which two headers differ; empty where one has no more.
std::pair<std::string, std::string> first_difference(std::string_view a, std::string_view b) {
  const auto take_line = [](std::string_view& text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    return std::string(line);
  };
  for (;;) {
    std::pair<std::string, std::string> lines = {take_line(a), take_line(b)};
    if (lines.first != lines.second || (a.empty() && b.empty())) return lines;
  }
}

// The header that another run left.
std::string shown_header(const std::string& line, const std::string& schema,
                         const std::string& where) {
  const auto document = JsonDocument::parse(line, where);
  const JsonCursor top(document);
  top.at("schema").one_of(std::array<std::string, 1>{schema}, "journal format");
  return top.at("header").string();
}

struct Contents {
  std::size_t whole_bytes = 0;  // up to the end of the last whole line
  std::vector<LineJournal::Line> lines;
};

// A cut last line is dropped; another run's header is an error.
Contents read_journal(const std::string& text, const fs::path& file, const std::string& schema,
                      const std::string& header) {
  const std::string expected = header_line(schema, header);
  Contents contents;
  if (expected.starts_with(text)) {  // empty, or cut within the header
    contents.whole_bytes = text == expected ? text.size() : 0;
    return contents;
  }
  std::size_t line = 0;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    const std::string where = file.string() + ":" + std::to_string(++line);
    std::string content = text.substr(begin, end - begin);
    contents.whole_bytes = end + 1;
    if (line > 1) {
      contents.lines.push_back({where, std::move(content)});
      continue;
    }
    if (content + "\n" == expected) continue;
    const auto [then, now] = first_difference(shown_header(content, schema, where), header);
    throw InputError(
        where, "the journal is of another run: " + in_quotes(then),
        "this run is " + in_quotes(now) + "; run without --resume or give another --out");
  }
  if (line == 0)
    throw InputError(file.string(), "no journal", "a first line that names the run is expected");
  return contents;
}

}  // namespace

LineJournal LineJournal::open(const fs::path& file, const std::string& schema,
                              const std::string& header, bool resume, std::vector<Line>& done) {
  LineJournal journal;
  journal.file_ = file;
  journal.fd_ = open_locked(file);
  std::string text = read_text(journal.fd_, file);
  if (!resume && !text.empty()) {
    // Somebody may yet want what the run before had measured.
    if (::rename(file.c_str(), (file.string() + ".old").c_str()) != 0)
      fail(file, "cannot set the old journal aside", errno);
    ::close(journal.fd_);
    journal.fd_ = open_locked(file);
    text.clear();
  }
  Contents contents = read_journal(text, file, schema, header);
  if (::ftruncate(journal.fd_, static_cast<off_t>(contents.whole_bytes)) != 0) {
    fail(file, "cannot shorten the journal", errno);
  }
  if (contents.whole_bytes == 0) {
    if (const int reason = write_all(journal.fd_, header_line(schema, header)))
      fail(file, "cannot write the journal", reason);
    ::fsync(journal.fd_);
    sync_folder(file.parent_path());
  }
  done = std::move(contents.lines);
  return journal;
}

LineJournal::LineJournal(LineJournal&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), file_(std::move(other.file_)) {}

LineJournal& LineJournal::operator=(LineJournal&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(file_, other.file_);
  return *this;
}

LineJournal::~LineJournal() {
  if (fd_ >= 0) ::close(fd_);
}

void LineJournal::append(std::string_view text) {
  const std::string line = std::string(text) + "\n";
  const off_t before = ::lseek(fd_, 0, SEEK_END);
  int reason = write_all(fd_, line);
  if (reason == 0 && ::fdatasync(fd_) != 0) reason = errno;
  if (reason == 0) return;
  // A full disk must not leave half a line in front of a later one.
  if (before >= 0 && ::ftruncate(fd_, before) != 0) fail(file_, "cannot write the journal", errno);
  fail(file_, "cannot write the journal", reason);
}

}  // namespace moegauge
