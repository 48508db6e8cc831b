#include "harness/tensors/tensor_dtype.h"

#include <array>

namespace moegauge {
namespace {

struct Entry {
  std::string_view name;
  std::uint8_t size;
};

// In the order of the enumeration.
constexpr std::array<Entry, 16> entries = {{{"BOOL", 1},
                                            {"U8", 1},
                                            {"I8", 1},
                                            {"F8_E4M3", 1},
                                            {"F8_E5M2", 1},
                                            {"F8_E8M0", 1},
                                            {"I16", 2},
                                            {"U16", 2},
                                            {"F16", 2},
                                            {"BF16", 2},
                                            {"I32", 4},
                                            {"U32", 4},
                                            {"F32", 4},
                                            {"I64", 8},
                                            {"U64", 8},
                                            {"F64", 8}}};

}  // namespace

std::string_view to_string(TensorDtype dtype) {
  return entries[static_cast<std::size_t>(dtype)].name;
}

std::optional<TensorDtype> tensor_dtype(std::string_view name) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].name == name) return static_cast<TensorDtype>(i);
  }
  return std::nullopt;
}

std::string tensor_dtype_names() {
  std::string names;
  for (const Entry& entry : entries) {
    if (!names.empty()) names += ", ";
    names += entry.name;
  }
  return names;
}

std::uint64_t element_size(TensorDtype dtype) {
  return entries[static_cast<std::size_t>(dtype)].size;
}

}  // namespace moegauge
