// Element types of the safetensors format, under the names that its headers use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace moegauge {

enum class TensorDtype : std::uint8_t {
  boolean,
  u8,
  i8,
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  i64,
  u64,
  f64,
};

// "BOOL", "F8_E4M3", "BF16" and so on.
std::string_view to_string(TensorDtype dtype);
std::optional<TensorDtype> tensor_dtype(std::string_view name);
// Every name, comma-separated.
std::string tensor_dtype_names();
// Bytes of an element: 1, 2, 4 or 8.
std::uint64_t element_size(TensorDtype dtype);

}  // namespace moegauge
