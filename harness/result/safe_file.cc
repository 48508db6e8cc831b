#include "harness/result/safe_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "reference/base/input_error.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& file, int reason) {
  throw InputError(file.string(), "cannot write: " + std::string(std::strerror(reason)),
                   "the old file, if any, is untouched; give a writable place with room");
}

// Closes, and on destruction without keep() removes, what it opened.
class TemporaryFile {
 public:
  TemporaryFile(fs::path file, mode_t mode) : file_(std::move(file)) {
    fd_ = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (fd_ >= 0) ::close(fd_);
    if (remove_) ::unlink(file_.c_str());
  }
  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  void keep() { remove_ = false; }
  // Some file systems report a full disk only now.
  int close() {
    const int result = ::close(fd_) == 0 ? 0 : errno;
    fd_ = -1;
    return result;
  }

 private:
  fs::path file_;
  int fd_ = -1;
  bool remove_ = true;
};

int replace_regular(const fs::path& file, std::string_view text, mode_t mode) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  const fs::path temporary = folder / ("." + file.filename().string().substr(0, 200) + ".tmp" +
                                       std::to_string(::getpid()));
  ::unlink(temporary.c_str());  // left by a killed process of the same number
  TemporaryFile out(temporary, mode);
  if (!out.is_open()) {
    out.keep();
    return errno;
  }
  if (const int reason = write_all(out.fd(), text)) return reason;
  if (::fsync(out.fd()) != 0) return errno;
  if (const int reason = out.close()) return reason;
  if (::rename(temporary.c_str(), file.c_str()) != 0) return errno;
  out.keep();
  sync_folder(folder);
  return 0;
}

int write_special(const fs::path& file, std::string_view text) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int reason = write_all(fd, text);
  ::close(fd);
  return reason;
}

}  // namespace

int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(fd, text.data(), text.size());
    if (wrote < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return 0;
}

void sync_folder(const fs::path& folder) {
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

void replace_file(const fs::path& file, std::string_view text) {
  struct stat found = {};
  mode_t mode = 0666;
  fs::path target = file;
  if (::stat(file.c_str(), &found) == 0) {
    if (S_ISDIR(found.st_mode)) fail(file, EISDIR);
    if (!S_ISREG(found.st_mode)) {
      if (const int reason = write_special(file, text)) fail(file, reason);
      return;
    }
    mode = found.st_mode & 07777;
    std::error_code error;
    target = fs::canonical(file, error);
    if (error) fail(file, error.value());
  } else if (struct stat link = {}; ::lstat(file.c_str(), &link) == 0 && S_ISLNK(link.st_mode)) {
    // It leads to nothing yet: what is written is what it leads to.
    std::error_code error;
    const fs::path to = fs::read_symlink(file, error);
    if (error) fail(file, error.value());
    target = file.parent_path() / to;
  }
  if (const int reason = replace_regular(target, text, mode)) fail(file, reason);
}

}  // namespace moegauge
