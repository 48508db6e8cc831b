// Writes safetensors files that are never half there: a temporary file in the same folder, renamed
// once it is whole.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "harness/tensors/safetensors.h"

namespace moegauge {

struct FileTensor {
  std::string name;
  TensorDtype dtype = TensorDtype::u8;
  std::vector<std::int64_t> shape;
};

// The header for `tensors`, names in the given order and offsets assigned; its size is a multiple
// of 8. Bytes lie in the given order where that aligns every tensor to its element, else widest
// elements first, as loaders that view bytes in place need it. `where` is named in errors: a name
// that occurs twice, a shape that fits no file, a header beyond max_safetensors_header.
struct SafetensorsLayout {
  std::string head;                   // length, JSON and padding: the file's first bytes
  std::vector<std::uint64_t> offset;  // of each tensor, from the file's first byte
  std::vector<std::uint64_t> bytes;   // of each tensor
  std::uint64_t file_bytes = 0;
};
SafetensorsLayout lay_out_safetensors(std::span<const FileTensor> tensors,
                                      const TensorMetadata& metadata, const std::string& where);

// Whether a file is on the disk before it has its name. Where it is not, a process that is killed
// still leaves nothing half done, but a machine that loses its power soon after may leave a file of
// which parts were never written: as any copied file.
enum class Sync : std::uint8_t { before_rename, left_to_system };

class SafetensorsWriter {
 public:
  // Creates the temporary file, with room for everything. Throws InputError with the system's
  // reason, as the functions below do.
  SafetensorsWriter(std::filesystem::path file, std::span<const FileTensor> tensors,
                    const TensorMetadata& metadata, Sync sync = Sync::before_rename);
  // Without a commit(): removes the temporary file; an old `file` is untouched.
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  // Bytes of tensor `tensor` (its place in `tensors`) from byte `offset` on. May be called from
  // several threads at once, in any order, once for each byte.
  void write(std::size_t tensor, std::uint64_t offset, std::span<const std::byte> bytes);
  // Every byte has been written: gives the file its name.
  void commit();

  std::uint64_t file_bytes() const { return layout_.file_bytes; }

 private:
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  [[noreturn]] void fail(int reason) const;

  std::filesystem::path file_, temporary_;
  SafetensorsLayout layout_;
  Sync sync_;
  int fd_ = -1;
  std::atomic<std::uint64_t> written_ = 0;
};

}  // namespace moegauge
