// Whole files as text.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace moegauge {

// Far above any text of ours; a larger file is one that was meant for another tool.
inline constexpr std::size_t max_text_bytes = std::size_t{1} << 30;

// Throws InputError with the system's reason, and for whatever is no regular file: a folder, a
// pipe that nobody writes to, a device without end. Links are followed; so /dev/stdin is read where
// a regular file was redirected to it.
std::string read_text_file(const std::filesystem::path& file);
// The same from an open descriptor, from its start; `file` is named in errors.
std::string read_text(int fd, const std::filesystem::path& file);

}  // namespace moegauge
