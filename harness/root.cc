#include "harness/root.h"

#include <cstdlib>
#include <string>

#include "reference/base/input_error.h"

namespace moegauge {
namespace fs = std::filesystem;
namespace {

bool holds_suites(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "suites" / "models", ignored);
}

}  // namespace

fs::path find_root() {
  if (const char* named = std::getenv("MOEGAUGE_ROOT"); named != nullptr && *named != '\0') {
    if (!holds_suites(named)) {
      throw InputError("MOEGAUGE_ROOT", std::string(named) + " holds no suites/models",
                       "name the folder that holds moegauge's suites/, or unset it");
    }
    return named;
  }
  std::error_code ignored;
  const fs::path executable = fs::read_symlink("/proc/self/exe", ignored);
  for (fs::path folder = executable.parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    if (holds_suites(folder)) return folder;
    if (holds_suites(folder / "share" / "moegauge")) return folder / "share" / "moegauge";
  }
  if (holds_suites(MOEGAUGE_SOURCE_DIR)) return MOEGAUGE_SOURCE_DIR;
  throw InputError("suites/", "not found beside the executable or above it",
                   "set MOEGAUGE_ROOT to the folder that holds moegauge's suites/");
}

}  // namespace moegauge
