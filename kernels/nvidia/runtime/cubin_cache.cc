#include "kernels/nvidia/runtime/cubin_cache.h"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

#include "reference/base/fnv1a.h"

namespace moegauge::cuda {
namespace {

constexpr std::string_view magic = "moegauge-cubin 2\n";

void put(std::string& out, const std::string& field) {
  out += std::to_string(field.size());
  out += ':';
  out += field;
}

// Length-prefixed, so that no two different requests give one key.
std::string key_of(const CompileRequest& request, const std::string& compiler) {
  std::string key;
  put(key, compiler);
  put(key, request.arch);
  for (const std::string& option : request.options) put(key, option);
  put(key, "kernels");
  for (const std::string& kernel : request.kernels) put(key, kernel);
  put(key, "sources");
  put(key, request.main.text);
  for (const SourceFile& file : request.includes) {
    put(key, file.name);
    put(key, file.text);
  }
  return key;
}

std::optional<std::string> take(std::string_view& text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon > 19) return std::nullopt;
  std::size_t size = 0;
  for (const char c : text.substr(0, colon)) {
    if (c < '0' || c > '9') return std::nullopt;
    size = size * 10 + static_cast<std::size_t>(c - '0');
  }
  if (size > text.size() - colon - 1) return std::nullopt;
  std::string field(text.substr(colon + 1, size));
  text.remove_prefix(colon + 1 + size);
  return field;
}

std::string entry_text(const std::string& key, const Cubin& cubin) {
  std::string text(magic);
  put(text, key);
  put(text, std::to_string(cubin.names.size()));
  for (const std::string& name : cubin.names) put(text, name);
  put(text, cubin.log);
  put(text, cubin.image);
  put(text, fnv1a_hex(cubin.image));
  return text;
}

// Nothing where the file is missing, cut, damaged or another key's.
std::shared_ptr<const Cubin> read_entry(const std::filesystem::path& file, const std::string& key,
                                        std::size_t kernels) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return nullptr;
  std::ostringstream bytes;
  bytes << in.rdbuf();
  const std::string text = std::move(bytes).str();
  std::string_view rest = text;
  if (!rest.starts_with(magic)) return nullptr;
  rest.remove_prefix(magic.size());
  const auto stored_key = take(rest);
  if (stored_key != key) return nullptr;
  if (take(rest) != std::to_string(kernels)) return nullptr;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kernels; ++i) {
    auto name = take(rest);
    if (!name) return nullptr;
    names.push_back(std::move(*name));
  }
  auto log = take(rest), image = take(rest), sum = take(rest);
  if (!log || !image || !sum || *sum != fnv1a_hex(*image)) return nullptr;
  return std::make_shared<const Cubin>(
      Cubin{.image = std::move(*image), .names = std::move(names), .log = std::move(*log)});
}

// Best effort: a cache that cannot be written costs time, not the run.
void write_entry(const std::filesystem::path& file, const std::string& text) {
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  std::string temporary = file.string() + ".XXXXXX";
  const int fd = mkstemp(temporary.data());
  if (fd < 0) return;
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = write(fd, text.data() + done, text.size() - done);
    if (wrote <= 0) break;
    done += static_cast<std::size_t>(wrote);
  }
  const bool whole = done == text.size() && fsync(fd) == 0;
  close(fd);
  if (whole) std::filesystem::rename(temporary, file, ignored);
  if (!whole || ignored) std::filesystem::remove(temporary, ignored);
}

}  // namespace

Expected<CubinCache::Entry, CompileFailure> CubinCache::get(const CompileRequest& request) {
  const auto version = compiler_version();
  if (!version) return Unexpected{CompileFailure{version.error().sentence, ""}};
  const std::string key = key_of(request, *version);
  const std::string hash = fnv1a_hex(key);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = resident_.find(key); found != resident_.end())
      return Entry{found->second, hash};
  }
  // Compiled outside the lock: two threads that want one kernel compile it twice, others go on.
  const std::filesystem::path file = folder_ / (hash + ".cubin");
  auto cubin = read_entry(file, key, request.kernels.size());
  const bool compiled = cubin == nullptr;
  if (compiled) {
    auto made = compile(request);
    if (!made) return Unexpected{made.error()};
    cubin = std::make_shared<const Cubin>(std::move(*made));
    write_entry(file, entry_text(key, *cubin));
  }
  const std::lock_guard lock(mutex_);
  return Entry{resident_.try_emplace(key, std::move(cubin)).first->second, hash, compiled};
}

std::filesystem::path CubinCache::default_folder() {
  const auto set = [](const char* name) -> const char* {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
  };
  if (const char* folder = set("MOEGAUGE_CACHE_DIR")) return folder;
  if (const char* folder = set("XDG_CACHE_HOME")) return std::filesystem::path(folder) / "moegauge";
  if (const char* folder = set("HOME"))
    return std::filesystem::path(folder) / ".cache" / "moegauge";
  return std::filesystem::temp_directory_path() / ("moegauge-" + std::to_string(getuid()));
}

}  // namespace moegauge::cuda
