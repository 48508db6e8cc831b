#include "harness/tensors/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "harness/json/cursor.h"
#include "harness/json/nearest.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t length_bytes = 8;
constexpr auto most = std::numeric_limits<std::int64_t>::max();
const char* const whole_file = "give a whole safetensors file";

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

// The header's length, after which it is safe to read that many bytes.
std::uint64_t header_length(std::string_view head, std::uint64_t file_bytes,
                            const std::string& where) {
  if (file_bytes < length_bytes || head.size() < length_bytes) {
    throw InputError(where, "it has " + std::to_string(file_bytes) + " bytes, too few for a header",
                     whole_file);
  }
  const std::uint64_t length = little_endian(head.substr(0, length_bytes));
  if (length > max_safetensors_header) {
    throw InputError(where,
                     "its first 8 bytes give a header of " + std::to_string(length) +
                         " bytes, more than " + std::to_string(max_safetensors_header),
                     "give a safetensors file");
  }
  if (length > file_bytes - length_bytes) {
    throw InputError(where,
                     "its header of " + std::to_string(length) + " bytes is cut after " +
                         std::to_string(file_bytes - length_bytes),
                     whole_file);
  }
  return length;
}

TensorMetadata read_metadata(const JsonCursor& cursor) {
  TensorMetadata metadata;
  for (const auto& [key, value] : cursor.members()) metadata.emplace_back(key, value.string());
  return metadata;
}

TensorDtype read_dtype(const JsonCursor& cursor) {
  const std::string name = cursor.string();
  const auto dtype = tensor_dtype(name);
  if (!dtype) cursor.fail("unknown dtype " + in_quotes(name), "known: " + tensor_dtype_names());
  return *dtype;
}

TensorInfo read_tensor(const std::string& name, const JsonCursor& cursor, std::uint64_t data_bytes,
                       const std::string& where) {
  cursor.only_keys({"dtype", "shape", "data_offsets"});
  TensorInfo tensor{.name = name, .dtype = read_dtype(cursor.at("dtype")), .shape = {}};
  for (const JsonCursor& extent : cursor.at("shape").items()) {
    tensor.shape.push_back(extent.integer(0, most));
  }
  const JsonCursor offsets = cursor.at("data_offsets");
  const std::vector<JsonCursor> ends = offsets.items();
  if (ends.size() != 2) offsets.fail_type("[begin, end]");
  tensor.begin = ends[0].unsigned_integer();
  tensor.end = ends[1].unsigned_integer();
  if (tensor.begin > tensor.end) offsets.fail("the end lies before the begin", "[begin, end]");
  if (tensor.end > data_bytes) {
    throw InputError(where,
                     "tensor " + in_quotes(name) + " ends at byte " + std::to_string(tensor.end) +
                         " of the data, of which there are " + std::to_string(data_bytes),
                     whole_file);
  }
  const std::uint64_t needed = byte_count(tensor.dtype, tensor.shape, name, where);
  if (needed != tensor.bytes()) {
    throw InputError(where,
                     "tensor " + in_quotes(name) + " has " + std::to_string(tensor.bytes()) +
                         " bytes, and " + describe(tensor) + " takes " + std::to_string(needed),
                     "dtype, shape and data_offsets must agree");
  }
  return tensor;
}

// Tensors must follow one another without gap or overlap, from the first byte to the last.
void check_layout(const std::vector<TensorInfo>& tensors, std::uint64_t data_bytes,
                  const std::string& where) {
  std::vector<const TensorInfo*> order;
  order.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) order.push_back(&tensor);
  std::ranges::sort(order, {}, [](const TensorInfo* t) { return std::pair(t->begin, t->end); });
  std::uint64_t at = 0;
  const TensorInfo* before = nullptr;
  for (const TensorInfo* tensor : order) {
    if (tensor->begin < at) {
      throw InputError(where,
                       "tensors " + in_quotes(before->name) + " and " + in_quotes(tensor->name) +
                           " overlap at byte " + std::to_string(tensor->begin) + " of the data",
                       "each byte belongs to one tensor");
    }
    if (tensor->begin > at) {
      throw InputError(where,
                       "bytes " + std::to_string(at) + " to " + std::to_string(tensor->begin) +
                           " of the data, before tensor " + in_quotes(tensor->name) +
                           ", belong to no tensor",
                       "each byte belongs to one tensor");
    }
    at = tensor->end;
    before = tensor;
  }
  if (at != data_bytes) {
    throw InputError(
        where,
        std::to_string(data_bytes - at) + " bytes follow the last tensor's and belong to none",
        "the file ends with its last tensor");
  }
}

// Closes on destruction.
struct OpenFile {
  int fd;
  ~OpenFile() {
    if (fd >= 0) ::close(fd);
  }
};

[[noreturn]] void fail_read(const std::string& where, int reason) {
  throw InputError(where, "cannot read: " + std::string(std::strerror(reason)),
                   "give a readable safetensors file");
}

std::string read_at(int fd, std::uint64_t bytes, const std::string& where) {
  std::string text(bytes, '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got =
        ::pread(fd, text.data() + have, text.size() - have, static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_read(where, errno);
    if (got == 0) throw InputError(where, "it became shorter while it was read", whole_file);
    have += static_cast<std::size_t>(got);
  }
  return text;
}

SafetensorsHeader read_header(int fd, const std::string& where) {
  struct stat found = {};
  if (::fstat(fd, &found) != 0) fail_read(where, errno);
  if (!S_ISREG(found.st_mode)) {
    throw InputError(where, "it is no regular file", "give a safetensors file");
  }
  const auto file_bytes = static_cast<std::uint64_t>(found.st_size);
  const std::string length = read_at(fd, std::min(length_bytes, file_bytes), where);
  const std::uint64_t head = length_bytes + header_length(length, file_bytes, where);
  return parse_safetensors_header(read_at(fd, head, where), file_bytes, where);
}

}  // namespace

std::string describe(TensorDtype dtype, std::span<const std::int64_t> shape) {
  std::string text = std::string(to_string(dtype)) + " [";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

std::string describe(const TensorInfo& tensor) { return describe(tensor.dtype, tensor.shape); }

std::uint64_t byte_count(TensorDtype dtype, std::span<const std::int64_t> shape,
                         const std::string& name, const std::string& where) {
  // A zero makes the product zero whatever stands beside it, also where that would not fit.
  const bool empty = std::ranges::find(shape, 0) != shape.end();
  std::uint64_t bytes = element_size(dtype);
  for (const std::int64_t extent : shape) {
    if (extent < 0 ||
        (!empty && __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes)) ||
        bytes > static_cast<std::uint64_t>(most)) {
      throw InputError(where,
                       "the shape of tensor " + in_quotes(name) + ", " + describe(dtype, shape) +
                           ", is no size that a file can have",
                       "the product of its entries must fit 63 bits");
    }
  }
  return empty ? 0 : bytes;
}

const TensorInfo* SafetensorsHeader::find(std::string_view name) const {
  const auto found = index.find(std::string(name));
  return found == index.end() ? nullptr : &tensors[found->second];
}

SafetensorsHeader parse_safetensors_header(std::string_view head, std::uint64_t file_bytes,
                                           const std::string& where) {
  const std::uint64_t length = header_length(head, file_bytes, where);
  SafetensorsHeader header;
  header.data_begin = length_bytes + length;
  const std::uint64_t data_bytes = file_bytes - header.data_begin;
  const std::string_view text = head.substr(length_bytes, length);
  if (text.size() != length || !text.starts_with('{')) {
    throw InputError(where, "its header does not begin with \"{\"", "give a safetensors file");
  }
  const JsonDocument document = JsonDocument::parse(std::string(text), where);
  for (const auto& [name, cursor] : JsonCursor(document).members()) {
    if (name == "__metadata__") {
      header.metadata = read_metadata(cursor);
      continue;
    }
    header.index.emplace(name, header.tensors.size());
    header.tensors.push_back(read_tensor(name, cursor, data_bytes, where));
  }
  check_layout(header.tensors, data_bytes, where);
  return header;
}

MappedBytes::MappedBytes(int fd, std::uint64_t offset, std::uint64_t bytes,
                         const std::string& where) {
  if (bytes == 0) return;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t skipped = offset % page;
  mapped_ = bytes + skipped;
  base_ = ::mmap(nullptr, mapped_, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset - skipped));
  if (base_ == MAP_FAILED) {
    base_ = nullptr;
    throw InputError(where,
                     "cannot map " + std::to_string(bytes) + " bytes: " + std::strerror(errno),
                     "give the process more memory to address");
  }
  ::madvise(base_, mapped_, MADV_SEQUENTIAL);
  bytes_ = {static_cast<const std::byte*>(base_) + skipped, bytes};
}

MappedBytes::~MappedBytes() {
  if (base_ != nullptr) ::munmap(base_, mapped_);
}

SafetensorsFile::SafetensorsFile(fs::path file) : path_(std::move(file)) {
  OpenFile open{::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (open.fd < 0) fail_read(path_.string(), errno);
  header_ = read_header(open.fd, path_.string());
  fd_ = std::exchange(open.fd, -1);
}

SafetensorsFile::~SafetensorsFile() { ::close(fd_); }

const TensorInfo& SafetensorsFile::at(std::string_view name) const {
  if (const TensorInfo* tensor = header_.find(name)) return *tensor;
  std::vector<std::string> names;
  names.reserve(header_.tensors.size());
  for (const TensorInfo& tensor : header_.tensors) names.push_back(tensor.name);
  const std::vector<std::string> near = similar_names(name, names, 3);
  throw InputError(path_.string(), "there is no tensor " + in_quotes(name),
                   near.empty() ? "it has " + std::to_string(names.size()) + " others"
                                : "similar names: " + joined(near));
}

MappedBytes SafetensorsFile::map(const TensorInfo& tensor) const {
  return {fd_, header_.data_begin + tensor.begin, tensor.bytes(), path_.string()};
}

}  // namespace moegauge
