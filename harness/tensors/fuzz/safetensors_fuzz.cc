// libFuzzer: any bytes are either refused with an InputError or give a header whose tensors all lie
// within the file. Seeds and a long run: docs/development.md.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "harness/tensors/safetensors.h"
#include "reference/base/input_error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  try {
    const moegauge::SafetensorsHeader header =
        moegauge::parse_safetensors_header(file, size, "fuzz");
    std::uint64_t bytes = header.data_begin;
    for (const moegauge::TensorInfo& tensor : header.tensors) {
      if (tensor.begin > tensor.end || header.data_begin + tensor.end > size) __builtin_trap();
      if (header.find(tensor.name) != &tensor) __builtin_trap();
      bytes += tensor.bytes();
    }
    if (bytes != size) __builtin_trap();
  } catch (const moegauge::InputError&) {
  }
  return 0;
}
