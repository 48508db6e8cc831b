// Where a command may write: never over what it reads, nor over its own other output.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace moegauge {

struct NamedFile {
  std::string role;  // "the suite", for the message
  std::filesystem::path file;
};

// Throws InputError where `out` is a folder or a named pipe, stands where nothing can be written,
// or is one of `taken` under whatever name: links are followed, and hard links are one file. Said
// before anything is measured.
void require_own_place(const std::string& option, const std::filesystem::path& out,
                       std::span<const NamedFile> taken);

// Where it is not there yet. What cannot be made shows when it is written to.
void make_folder_of(const std::filesystem::path& out);
// Replaces a file that is an output of a command, whose folder is made. Throws InputError.
void write_output(const std::filesystem::path& out, std::string_view text);

}  // namespace moegauge
