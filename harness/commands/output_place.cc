#include "harness/commands/output_place.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "harness/result/safe_file.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code ignored;
  if (fs::equivalent(a, b, ignored)) {
    // Two streams of one terminal or pipe are told apart by their reader.
    return fs::is_regular_file(a, ignored);
  }
  const bool neither_exists = !fs::exists(a, ignored) && !fs::exists(b, ignored);
  return neither_exists && fs::weakly_canonical(a, ignored) == fs::weakly_canonical(b, ignored);
}

// A pipe with a name: writing waits for a reader, who may never come. One without, which
// /dev/stdout leads to, is somebody's already.
bool is_named_pipe(const fs::path& file) {
  std::error_code error;
  if (!fs::is_fifo(file, error)) return false;
  const fs::path name = fs::canonical(file, error);
  return !error && !name.empty();
}

// Files are replaced by renaming one beside them, which needs the folder. Empty where it serves.
std::string why_not_writable(const fs::path& out) {
  std::error_code ignored;
  if (fs::is_other(out, ignored) || fs::is_fifo(out, ignored)) return "";  // /dev/stdout
  if (fs::is_character_file(out, ignored)) return "";
  std::error_code error;
  fs::path folder = fs::absolute(fs::weakly_canonical(out, error), ignored).parent_path();
  if (error) return "it cannot be written: " + error.message();
  // Those that are not there yet are made.
  while (!folder.empty() && !fs::exists(folder, ignored) && folder != folder.parent_path()) {
    folder = folder.parent_path();
  }
  if (!fs::is_directory(folder, ignored)) return folder.string() + " is no folder";
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return "";
  return "nothing can be written in " + folder.string() + ": " + std::strerror(errno);
}

}  // namespace

void require_own_place(const std::string& option, const fs::path& out,
                       std::span<const NamedFile> taken) {
  std::error_code ignored;
  const std::string where = option + " " + out.string();
  if (fs::is_directory(out, ignored))
    throw InputError(where, "it is a folder", "name a file in it");
  if (is_named_pipe(out)) throw InputError(where, "it is a pipe", "name a file");
  if (const std::string reason = why_not_writable(out); !reason.empty()) {
    throw InputError(where, reason, "name a file in a folder of yours");
  }
  for (const NamedFile& other : taken) {
    if (other.file.empty() || !same_file(out, other.file)) continue;
    throw InputError(where, "it is " + other.role + ", " + other.file.string(),
                     "name another file");
  }
}

void make_folder_of(const fs::path& out) {
  std::error_code ignored;
  if (out.has_parent_path()) fs::create_directories(out.parent_path(), ignored);
}

void write_output(const fs::path& out, std::string_view text) {
  make_folder_of(out);
  replace_file(out, text);
}

}  // namespace moegauge
