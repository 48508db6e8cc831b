// A folder of files that appears in one step, as SafetensorsWriter's files do.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "harness/tensors/safetensors_writer.h"

namespace moegauge {

class NewFolder {
 public:
  // Makes a temporary folder beside `folder`. Throws InputError where it cannot, or where `folder`
  // exists and holds anything but files called one of `names`: nothing else of it would be left.
  NewFolder(const std::filesystem::path& folder, std::span<const std::string> names);
  // Without a commit(): removes the temporary folder; an old `folder` is untouched.
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  // Where to put the files.
  const std::filesystem::path& path() const { return temporary_; }
  // Gives the folder its name; an old one and its files are removed.
  void commit(Sync sync = Sync::before_rename);

 private:
  [[noreturn]] void fail(int reason) const;

  std::filesystem::path folder_, temporary_;
};

}  // namespace moegauge
