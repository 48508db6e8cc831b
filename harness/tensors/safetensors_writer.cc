#include "harness/tensors/safetensors_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <unordered_set>

#include "harness/json/nearest.h"
#include "harness/result/safe_file.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

std::string json_string(const std::string& text) { return nlohmann::json(text).dump(); }

std::string header_json(std::span<const FileTensor> tensors, const TensorMetadata& metadata,
                        const SafetensorsLayout& layout) {
  std::string text = "{";
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      text += json_string(key) + ":" + json_string(value) + ",";
    }
    text.back() = '}';
    text += ",";
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const FileTensor& tensor = tensors[i];
    text += json_string(tensor.name) + ":{\"dtype\":\"" + std::string(to_string(tensor.dtype)) +
            "\",\"shape\":[";
    for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
      text += (d == 0 ? "" : ",") + std::to_string(tensor.shape[d]);
    }
    text += "],\"data_offsets\":[" + std::to_string(layout.offset[i]) + "," +
            std::to_string(layout.offset[i] + layout.bytes[i]) + "]},";
  }
  if (text.back() == ',') text.pop_back();
  return text + "}";
}

// The order of the tensors' bytes.
std::vector<std::size_t> byte_order(std::span<const FileTensor> tensors,
                                    std::span<const std::uint64_t> bytes) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::uint64_t at = 0;
  for (const std::size_t i : order) {
    if (at % element_size(tensors[i].dtype) != 0) {
      std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t place) {
        return element_size(tensors[place].dtype);
      });
      break;
    }
    at += bytes[i];
  }
  return order;
}

void check_names(std::span<const FileTensor> tensors, const std::string& where) {
  std::unordered_set<std::string_view> names = {"__metadata__"};
  for (const FileTensor& tensor : tensors) {
    if (!names.insert(tensor.name).second) {
      throw InputError(where, "two tensors would be called " + in_quotes(tensor.name),
                       "rename one of them");
    }
  }
}

}  // namespace

SafetensorsLayout lay_out_safetensors(std::span<const FileTensor> tensors,
                                      const TensorMetadata& metadata, const std::string& where) {
  check_names(tensors, where);
  SafetensorsLayout layout;
  for (const FileTensor& tensor : tensors) {
    layout.bytes.push_back(byte_count(tensor.dtype, tensor.shape, tensor.name, where));
  }
  layout.offset.resize(tensors.size());
  std::uint64_t data_bytes = 0;
  for (const std::size_t i : byte_order(tensors, layout.bytes)) {
    layout.offset[i] = data_bytes;
    data_bytes += layout.bytes[i];
    if (data_bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / 2) {
      throw InputError(where, "the tensors take more bytes than a file can have",
                       "spread them over several files");
    }
  }
  std::string json = header_json(tensors, metadata, layout);
  json.resize((json.size() + 7) / 8 * 8, ' ');
  if (json.size() > max_safetensors_header) {
    throw InputError(where, "its header would take " + std::to_string(json.size()) + " bytes",
                     "at most " + std::to_string(max_safetensors_header) + " can be read");
  }
  for (std::size_t byte = 0; byte < 8; ++byte) {
    layout.head += static_cast<char>(json.size() >> (8 * byte) & 0xFF);
  }
  layout.head += json;
  for (std::uint64_t& offset : layout.offset) offset += layout.head.size();
  layout.file_bytes = layout.head.size() + data_bytes;
  return layout;
}

SafetensorsWriter::SafetensorsWriter(fs::path file, std::span<const FileTensor> tensors,
                                     const TensorMetadata& metadata, Sync sync)
    : file_(std::move(file)),
      layout_(lay_out_safetensors(tensors, metadata, file_.string())),
      sync_(sync) {
  struct stat found = {};
  mode_t mode = 0666;
  if (::stat(file_.c_str(), &found) == 0) {
    if (S_ISDIR(found.st_mode)) fail(EISDIR);
    if (!S_ISREG(found.st_mode)) {
      throw InputError(file_.string(), "it is no regular file", "name a file that may be replaced");
    }
    mode = found.st_mode & 07777;
    std::error_code ignored;  // a symbolic link keeps pointing where it does
    if (fs::path target = fs::canonical(file_, ignored); !ignored) file_ = std::move(target);
  }
  const fs::path folder = file_.has_parent_path() ? file_.parent_path() : fs::path(".");
  temporary_ = folder / ("." + file_.filename().string().substr(0, 200) + ".tmp" +
                         std::to_string(::getpid()));
  ::unlink(temporary_.c_str());  // left by a killed process of the same number
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd_ < 0) fail(errno);
  try {
    // Says now, not after an hour, that there is no room. Not every file system can.
    const auto bytes = static_cast<off_t>(layout_.file_bytes);
    if (::fallocate(fd_, 0, 0, bytes) != 0 && errno != EOPNOTSUPP && errno != ENOSYS) fail(errno);
    if (::ftruncate(fd_, bytes) != 0) fail(errno);
    write_at(0, std::as_bytes(std::span(layout_.head)));
  } catch (...) {
    ::close(fd_);
    ::unlink(temporary_.c_str());
    throw;
  }
}

SafetensorsWriter::~SafetensorsWriter() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void SafetensorsWriter::write(std::size_t tensor, std::uint64_t offset,
                              std::span<const std::byte> bytes) {
  if (tensor >= layout_.bytes.size() || offset > layout_.bytes[tensor] ||
      bytes.size() > layout_.bytes[tensor] - offset) {
    throw std::logic_error("bytes outside of the tensor that is being written");
  }
  write_at(layout_.offset[tensor] + offset, bytes);
}

void SafetensorsWriter::commit() {
  if (written_ != layout_.file_bytes) {
    throw std::logic_error("a safetensors file is committed before all of it was written");
  }
  if (sync_ == Sync::before_rename && ::fsync(fd_) != 0) fail(errno);
  if (::rename(temporary_.c_str(), file_.c_str()) != 0) fail(errno);
  ::close(std::exchange(fd_, -1));
  if (sync_ == Sync::before_rename) sync_folder(file_.parent_path());
}

void SafetensorsWriter::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  written_ += bytes.size();
  const auto begin = static_cast<off64_t>(offset), size = static_cast<off64_t>(bytes.size());
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) fail(errno);
    offset += static_cast<std::uint64_t>(wrote);
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
  // The disk works while more is made, and the final sync waits for little. Only a hint.
  if (sync_ == Sync::before_rename) ::sync_file_range(fd_, begin, size, SYNC_FILE_RANGE_WRITE);
}

void SafetensorsWriter::fail(int reason) const {
  throw InputError(file_.string(), "cannot write: " + std::string(std::strerror(reason)),
                   "the old file, if any, is untouched; give a writable place with room");
}

}  // namespace moegauge
