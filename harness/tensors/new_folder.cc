#include "harness/tensors/new_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "harness/json/nearest.h"
#include "harness/result/safe_file.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

void refuse_others(const fs::path& folder, std::span<const std::string> names) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (std::ranges::find(names, name) == names.end() || entry.is_directory()) {
      throw InputError(folder.string(),
                       "it holds " + in_quotes(name) + ", which replacing it would remove",
                       "name a folder that is new or empty");
    }
  }
}

}  // namespace

NewFolder::NewFolder(const fs::path& folder, std::span<const std::string> names)
    : folder_(fs::absolute(folder).lexically_normal()) {
  if (!folder_.has_filename()) folder_ = folder_.parent_path();  // "out/"
  std::error_code error;
  if (fs::exists(folder_, error)) {
    if (!fs::is_directory(folder_, error)) fail(ENOTDIR);
    folder_ = fs::canonical(folder_);
    refuse_others(folder_, names);
  }
  const fs::path temporary =
      folder_.parent_path() /
      ("." + folder_.filename().string().substr(0, 200) + ".tmp" + std::to_string(::getpid()));
  fs::remove_all(temporary, error);  // left by a killed process of the same number
  if (::mkdir(temporary.c_str(), 0777) != 0) fail(errno);
  temporary_ = temporary;
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void NewFolder::commit(Sync sync) {
  if (sync == Sync::before_rename) sync_folder(temporary_);
  // This replaces an empty folder too.
  if (::rename(temporary_.c_str(), folder_.c_str()) == 0) {
    temporary_.clear();
  } else if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, folder_.c_str(),
                         RENAME_EXCHANGE) != 0) {
    fail(errno);
  }  // else the temporary name is now the old folder's, and goes with this object
  if (sync == Sync::before_rename) sync_folder(folder_.parent_path());
}

void NewFolder::fail(int reason) const {
  throw InputError(folder_.string(), "cannot write: " + std::string(std::strerror(reason)),
                   "an old folder, if any, is untouched; name a folder in a writable place");
}

}  // namespace moegauge
