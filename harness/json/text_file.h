// Whole files as text.
#pragma once

#include <filesystem>
#include <string>

namespace moegauge {

// Throws InputError with the system's reason.
std::string read_text_file(const std::filesystem::path& file);
// The same from an open descriptor, from its start; `file` is named in errors.
std::string read_text(int fd, const std::filesystem::path& file);

}  // namespace moegauge
