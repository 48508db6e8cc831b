#include "reference/base/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "reference/base/input_error.h"

namespace moegauge {
namespace {

constexpr const char* readable = "give the path of a readable file";

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

// Before anything is read: a pipe may never end, and a device may act on being read.
std::size_t regular_size(int fd, const std::filesystem::path& file) {
  struct stat found = {};
  if (::fstat(fd, &found) != 0) throw InputError(file.string(), std::strerror(errno), readable);
  if (!S_ISREG(found.st_mode)) {
    throw InputError(file.string(), std::string("it is ") + kind_of(found.st_mode),
                     "a regular file is expected");
  }
  return static_cast<std::size_t>(found.st_size);
}

[[noreturn]] void fail_large(const std::filesystem::path& file) {
  throw InputError(file.string(), "larger than 1 GiB", "a text file is expected");
}

}  // namespace

std::string read_text(int fd, const std::filesystem::path& file) {
  const std::size_t size = regular_size(fd, file);
  if (size > max_text_bytes) fail_large(file);
  std::string text;
  text.reserve(size);
  char buffer[1 << 16];
  ssize_t got = 0;
  while ((got = ::pread(fd, buffer, sizeof buffer, static_cast<off_t>(text.size()))) != 0) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InputError(file.string(), std::strerror(errno), readable);
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > max_text_bytes) fail_large(file);  // it grew meanwhile
  }
  return text;
}

std::string read_text_file(const std::filesystem::path& file) {
  // Opening a pipe would wait for a writer.
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw InputError(file.string(), std::strerror(errno), readable);
  try {
    std::string text = read_text(fd, file);
    ::close(fd);
    return text;
  } catch (...) {
    ::close(fd);
    throw;
  }
}

}  // namespace moegauge
