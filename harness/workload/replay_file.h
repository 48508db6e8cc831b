// A safetensors file that holds tensors of a layer under the names of docs/replay.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/tensors/safetensors.h"
#include "harness/workload/tensor_form.h"

namespace moegauge {

class ReplayFile {
 public:
  // Throws InputError, as everything here.
  explicit ReplayFile(const std::filesystem::path& path) : file_(path) {}

  // Refuses a tensor that nothing would read: a misspelt one would be generated instead. Names in
  // `ignored` pass and are not suggested.
  void require_names(std::span<const std::string> known, std::span<const std::string> ignored,
                     const std::string& reader) const;
  // The same for whole layers.
  void require_layer_names() const;

  // nullptr where there is none.
  const TensorInfo* find(std::string_view name) const { return file_.header().find(name); }
  std::string metadata(std::string_view key) const;  // empty where there is none
  const SafetensorsFile& tensors() const { return file_; }
  std::string where() const { return file_.path().string(); }

  // The first of `forms` that the tensor fits; throws InputError that says what it is and what all
  // the forms are.
  std::size_t require(const TensorInfo& tensor, std::span<const TensorForm> forms) const;
  [[noreturn]] void fail(std::string_view name, const std::string& wrong,
                         const std::string& right) const;

  void read_bytes(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const;
  template <typename T>
  std::vector<T> read(const TensorInfo& tensor) const {
    std::vector<T> values(tensor.bytes() / sizeof(T));
    read_bytes(tensor, 0, std::as_writable_bytes(std::span(values)));
    return values;
  }
  // Elements [first, first + out.size()) of a BF16, F16 or F32 tensor.
  void read_floats(const TensorInfo& tensor, std::int64_t first, std::span<float> out) const;
  std::vector<float> read_floats(const TensorInfo& tensor) const;

 private:
  SafetensorsFile file_;
};

}  // namespace moegauge
