// Device source files as the build embedded them; defined in a file that CMake generates.
#pragma once

#include <span>

namespace moegauge::cuda {

struct EmbeddedFile {
  const char* name;  // relative to the source root
  const char* text;
};
std::span<const EmbeddedFile> embedded_files();

}  // namespace moegauge::cuda
