#include "kernels/nvidia/runtime/sources.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "kernels/nvidia/runtime/embedded.h"
#include "reference/base/input_error.h"

namespace moegauge::cuda {

std::vector<SourceFile> device_sources(std::string_view folder) {
  const char* tree = std::getenv("MOEGAUGE_DEVICE_SOURCE");
  std::vector<SourceFile> files;
  for (const EmbeddedFile& embedded : embedded_files()) {
    const std::string_view name = embedded.name;
    // What another backend alone compiles is no part of a program, nor of its hash.
    const bool shared =
        name.starts_with("kernels/device/") || name.starts_with("kernels/nvidia/device/");
    if (!shared && (folder.empty() || !name.starts_with(folder))) continue;
    if (tree == nullptr || *tree == '\0') {
      files.push_back({embedded.name, embedded.text});
      continue;
    }
    const auto path = std::filesystem::path(tree) / embedded.name;
    std::ifstream in(path, std::ios::binary);
    if (!in) {
      throw InputError("MOEGAUGE_DEVICE_SOURCE", "no file " + path.string(),
                       "name the root of a moegauge source tree");
    }
    std::ostringstream text;
    text << in.rdbuf();
    files.push_back({embedded.name, std::move(text).str()});
  }
  return files;
}

}  // namespace moegauge::cuda
