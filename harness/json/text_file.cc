#include "harness/json/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "reference/base/input_error.h"

namespace moegauge {
namespace {

constexpr const char* readable = "give the path of a readable file";
constexpr std::size_t max_bytes = std::size_t{1}
                                  << 30;  // far above any file of ours; /dev/zero has no end

}  // namespace

std::string read_text(int fd, const std::filesystem::path& file) {
  std::string text;
  char buffer[1 << 16];
  ssize_t got = 0;
  while ((got = ::pread(fd, buffer, sizeof buffer, static_cast<off_t>(text.size()))) != 0) {
    if (got < 0 && errno == ESPIPE) got = ::read(fd, buffer, sizeof buffer);  // a pipe
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InputError(file.string(), std::strerror(errno), readable);
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > max_bytes)
      throw InputError(file.string(), "larger than 1 GiB", "give a JSON file");
  }
  return text;
}

std::string read_text_file(const std::filesystem::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
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
