// Files that are never half written.
#pragma once

#include <filesystem>
#include <string_view>

namespace moegauge {

// Replaces `file` by `text`: a temporary file in the same folder, synced, renamed, the folder
// synced. A symbolic link keeps pointing where it does; a pipe or device is written to directly.
// Throws InputError with the system's reason; the old file is then untouched and the temporary one
// removed.
void replace_file(const std::filesystem::path& file, std::string_view text);

// Writes all of `text`; returns 0 or errno.
int write_all(int fd, std::string_view text);

// Makes a rename or creation in `folder` survive a power cut; file systems that cannot are ignored.
void sync_folder(const std::filesystem::path& folder);

}  // namespace moegauge
