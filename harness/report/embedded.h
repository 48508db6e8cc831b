// The page's parts as the build embedded them; defined in a file that CMake generates.
#pragma once

#include <span>

namespace moegauge::report {

struct EmbeddedFile {
  const char* name;  // relative to the source root
  const char* text;
};
std::span<const EmbeddedFile> embedded_files();

}  // namespace moegauge::report
