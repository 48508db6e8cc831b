// Reads safetensors files, trusting nothing in them. The format (huggingface/safetensors): 8 bytes
// of header length n, little-endian; n bytes of JSON, padded with spaces; then the tensors' bytes,
// row-major and little-endian, without gaps. The header maps each name to
// {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, offsets counted from the first byte
// after it; "__metadata__" maps strings to strings.
//
// Everything here throws InputError, "file: what is wrong; what would be right".
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/tensors/tensor_dtype.h"

namespace moegauge {

// What the format's own library accepts.
inline constexpr std::uint64_t max_safetensors_header = 100'000'000;

struct TensorInfo {
  std::string name;
  TensorDtype dtype = TensorDtype::u8;
  std::vector<std::int64_t> shape;  // empty: a scalar; every entry >= 0
  std::uint64_t begin = 0;          // bytes after the header
  std::uint64_t end = 0;            // end - begin is the product of shape times the element's size

  std::uint64_t bytes() const { return end - begin; }
};

// "BF16 [2, 3]", for messages.
std::string describe(TensorDtype dtype, std::span<const std::int64_t> shape);
std::string describe(const TensorInfo& tensor);
// Product of `shape` times the element's size; throws InputError(where, ...) where that, or an
// entry, is negative or does not fit 63 bits. The first is of a tensor called `name`.
std::uint64_t byte_count(TensorDtype dtype, std::span<const std::int64_t> shape,
                         const std::string& name, const std::string& where);

using TensorMetadata = std::vector<std::pair<std::string, std::string>>;

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // in the header's order
  TensorMetadata metadata;          // likewise; empty where there is none
  std::uint64_t data_begin = 0;     // of the first tensor's byte, from the file's first
  std::unordered_map<std::string, std::size_t> index = {};  // name -> place in `tensors`

  // nullptr where there is no such tensor.
  const TensorInfo* find(std::string_view name) const;
};

// The header of a file of `file_bytes` bytes that begins with `head`; `head` may end after the
// header. `where` is the file's name in errors.
SafetensorsHeader parse_safetensors_header(std::string_view head, std::uint64_t file_bytes,
                                           const std::string& where);

// A range of a file in memory, read-only; unmapped with the object. A process that cuts the file
// short meanwhile makes reading it end in SIGBUS: writers that replace files by renaming do not.
class MappedBytes {
 public:
  MappedBytes() = default;
  // The range lies within the file. An empty one maps nothing.
  MappedBytes(int fd, std::uint64_t offset, std::uint64_t bytes, const std::string& where);
  ~MappedBytes();
  MappedBytes(MappedBytes&& other) noexcept { swap(other); }
  MappedBytes& operator=(MappedBytes&& other) noexcept {
    swap(other);
    return *this;
  }

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void swap(MappedBytes& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(mapped_, other.mapped_);
    std::swap(bytes_, other.bytes_);
  }

  void* base_ = nullptr;
  std::size_t mapped_ = 0;
  std::span<const std::byte> bytes_;
};

// An open file. Only what is mapped takes memory: one tensor at a time, if so used.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(std::filesystem::path file);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const SafetensorsHeader& header() const { return header_; }
  // The tensor called `name`; where there is none the error names the file and the nearest name.
  const TensorInfo& at(std::string_view name) const;
  // A tensor of this file's header. The bytes are aligned to the element where the file's writer
  // took care that they are; the format does not promise it.
  MappedBytes map(const TensorInfo& tensor) const;

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  SafetensorsHeader header_;
};

}  // namespace moegauge
