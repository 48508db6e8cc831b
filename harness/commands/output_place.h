// Where a command may write: never over what it reads, nor over its own other output.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace moegauge {

struct NamedFile {
  std::string role;  // "the suite", for the message
  std::filesystem::path file;
};

// Throws InputError where `out` is a folder or a named pipe, or is one of `taken` under whatever
// name: links are followed, and hard links are one file.
void require_own_place(const std::string& option, const std::filesystem::path& out,
                       std::span<const NamedFile> taken);

}  // namespace moegauge
