#include "harness/commands/journal_identity.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

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

constexpr std::uintmax_t most_read_whole = std::uintmax_t{1} << 24;  // bytes
constexpr std::uintmax_t head_bytes = std::uintmax_t{1} << 20;
constexpr std::uintmax_t samples = 64, sample_bytes = 4096;

// Shards of a checkpoint are many GiB. Of a file so large: its size, when it was written, its first
// MiB (a shard's header, or most of it) and samples from all over it, so that two fine-tunings of
// one model, copied with their dates, are told apart too.
std::string large_file_identity(const fs::path& file, std::uintmax_t size) {
  std::error_code ignored;
  const auto written = fs::last_write_time(file, ignored).time_since_epoch().count();
  std::ifstream stream(file, std::ios::binary);
  std::string parts(head_bytes, '\0'), sample(sample_bytes, '\0');
  stream.read(parts.data(), head_bytes);
  for (std::uintmax_t i = 1; i <= samples; ++i) {
    stream.seekg(static_cast<std::streamoff>((size - sample_bytes) * i / samples));
    stream.read(sample.data(), sample_bytes);
    parts += sample;
  }
  return fnv1a_hex(parts) + " of " + std::to_string(size) + " bytes written at " +
         std::to_string(written);
}

std::string content_identity(const fs::path& file) {
  std::error_code ignored;
  const std::uintmax_t size = fs::file_size(file, ignored);
  return size > most_read_whole ? large_file_identity(file, size) : fnv1a_hex(read_text_file(file));
}

// All that decides how long and how cold a case is measured: a quick look is no full measurement.
std::string effort(const MeasureSettings& s) {
  std::ostringstream text;
  text << s.stopping.seconds_per_member << " s or " << s.stopping.max_rounds << " rounds, "
       << s.stopping.min_rows << " rows of " << s.row_seconds << " s at least, "
       << s.stopping.relative_interval << " at " << s.stopping.confidence << ", "
       << s.max_weight_sets << " weight sets or " << s.max_weight_bytes << " bytes at most"
       << (s.stages ? ", with stages" : "");
  return text.str();
}

}  // namespace

std::string journal_header(const std::string& suite, const MeasureSettings& settings,
                           std::span<const CaseCoordinates> cases, std::span<const NamedFile> files,
                           std::span<const Backend* const> backends) {
  std::string ids;
  for (const CaseCoordinates& c : cases) ids += case_id(c) + "\n";
  std::string header = "suite " + suite + "\nseed " + std::to_string(settings.seed) +
                       "\nmeasured for " + effort(settings) + "\ncases " + fnv1a_hex(ids) +
                       "\nbuild " + build_identity();
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
