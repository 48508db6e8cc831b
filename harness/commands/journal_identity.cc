#include "harness/commands/journal_identity.h"

#include <filesystem>

#include "harness/measure/prepare.h"
#include "reference/base/fnv1a.h"
#include "reference/base/text_file.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

// Changes with every build: a journal of other kernels must not be taken for this one's.
std::string build_identity() {
  std::error_code ignored;
  const fs::path self = "/proc/self/exe";
  const auto written = fs::last_write_time(self, ignored).time_since_epoch().count();
  return fnv1a_hex(std::to_string(fs::file_size(self, ignored)) + " " + std::to_string(written));
}

// Tensors may be many GiB: of those, what changes with every writing.
std::string content_identity(const fs::path& file) {
  if (file.extension() != ".safetensors") return fnv1a_hex(read_text_file(file));
  std::error_code ignored;
  const auto written = fs::last_write_time(file, ignored).time_since_epoch().count();
  return std::to_string(fs::file_size(file, ignored)) + " bytes of " + std::to_string(written);
}

}  // namespace

std::string journal_header(const std::string& suite, std::uint64_t seed,
                           std::span<const CaseCoordinates> cases, std::span<const NamedFile> files,
                           std::span<const Backend* const> backends) {
  std::string ids;
  for (const CaseCoordinates& c : cases) ids += case_id(c) + "\n";
  std::string header = "suite " + suite + "\nseed " + std::to_string(seed) + "\ncases " +
                       fnv1a_hex(ids) + "\nbuild " + build_identity();
  for (const Backend* backend : backends) {
    if (backend->availability().present) header += "\ndevice " + device_key(backend->device());
  }
  for (const auto& [role, file] : files) {
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored)) continue;
    header += "\nfile " + file.string() + " with content " + content_identity(file);
  }
  return header;
}

}  // namespace moegauge
