// Named arrays, row-major: what single ops take and give.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/layer.h"

namespace moegauge {

enum class TensorType : std::uint8_t {
  fp32,
  fp64,  // of answers only
  bf16,
  fp16,
  int32,
  int8,
  e4m3fn,
  e4m3fnuz,
  e8m0,
  packed,  // bytes that hold several elements each, in a scheme's canonical order
};
std::string_view to_string(TensorType type);
std::int64_t element_bytes(TensorType type);
TensorType tensor_type(Dtype dtype);

struct TensorSpec {
  std::string name = {};
  TensorType type = TensorType::fp32;
  std::vector<std::int64_t> shape = {};

  std::int64_t elements() const;  // 1 where the shape is empty
  std::int64_t bytes() const { return elements() * element_bytes(type); }
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

// Owned. The allocator aligns enough for every element type.
struct Tensor {
  TensorSpec spec = {};
  std::vector<std::byte> bytes = {};

  Tensor() = default;
  explicit Tensor(TensorSpec of)
      : spec(std::move(of)), bytes(static_cast<std::size_t>(spec.bytes())) {}

  template <typename T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  template <typename T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
};

// Zeros of each spec.
std::vector<Tensor> make_tensors(std::span<const TensorSpec> specs);

// The tensor of that name, or nullptr.
const Tensor* find_tensor(std::span<const Tensor> tensors, std::string_view name);
// Throws InputError where there is none.
const Tensor& tensor_named(std::span<const Tensor> tensors, std::string_view name);

// Fills with what no right answer holds: NaN, or a number outside the range in use. Packed bytes
// have no such value and are left.
void poison(Tensor& tensor);

// A copy of `from` as doubles; of types that stand for numbers by themselves (not packed).
std::vector<double> decoded(const Tensor& from);

}  // namespace moegauge
