// One expert's part of a tensor in a checkpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "harness/tensors/safetensors.h"

namespace moegauge {

struct Slab {
  const SafetensorsFile* file = nullptr;  // null: there is no such tensor
  const TensorInfo* tensor = nullptr;
  std::vector<std::int64_t> shape = {};  // of the part
  std::uint64_t offset = 0;              // of its first byte, from the tensor's
};

// A slab in memory while it is read. Elements are copied out one by one: nothing promises that they
// are aligned.
class SlabBytes {
 public:
  explicit SlabBytes(const Slab& slab)
      : mapped_(slab.file->map(*slab.tensor)),
        begin_(mapped_.bytes().data() + slab.offset),
        dtype_(slab.tensor->dtype) {}

  template <typename T>
  T at(std::int64_t i) const {
    T value;
    std::memcpy(&value, begin_ + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
    return value;
  }
  // BF16, F16 or F32.
  float real(std::int64_t i) const;

 private:
  MappedBytes mapped_;
  const std::byte* begin_;
  TensorDtype dtype_;
};

}  // namespace moegauge
