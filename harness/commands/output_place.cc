#include "harness/commands/output_place.h"

#include <system_error>

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

}  // namespace

void require_own_place(const std::string& option, const fs::path& out,
                       std::span<const NamedFile> taken) {
  std::error_code ignored;
  const std::string where = option + " " + out.string();
  if (fs::is_directory(out, ignored))
    throw InputError(where, "it is a folder", "name a file in it");
  if (is_named_pipe(out)) throw InputError(where, "it is a pipe", "name a file");
  for (const NamedFile& other : taken) {
    if (other.file.empty() || !same_file(out, other.file)) continue;
    throw InputError(where, "it is " + other.role + ", " + other.file.string(),
                     "name another file");
  }
}

}  // namespace moegauge
