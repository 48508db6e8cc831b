#include "reference/tensor.h"

#include <algorithm>
#include <array>
#include <limits>

#include "reference/base/input_error.h"
#include "reference/dtype.h"
#include "reference/formats/e8m0.h"
#include "reference/formats/fp8.h"

namespace moegauge {
namespace {

struct TypeRow {
  TensorType type;
  std::string_view name;
  std::int64_t bytes;
};
constexpr std::array<TypeRow, 10> kTypes = {{{TensorType::fp32, "fp32", 4},
                                             {TensorType::fp64, "fp64", 8},
                                             {TensorType::bf16, "bf16", 2},
                                             {TensorType::fp16, "fp16", 2},
                                             {TensorType::int32, "int32", 4},
                                             {TensorType::int8, "int8", 1},
                                             {TensorType::e4m3fn, "e4m3fn", 1},
                                             {TensorType::e4m3fnuz, "e4m3fnuz", 1},
                                             {TensorType::e8m0, "e8m0", 1},
                                             {TensorType::packed, "packed", 1}}};

const TypeRow& row(TensorType type) { return kTypes.at(static_cast<std::size_t>(type)); }

template <typename T, typename Decode>
std::vector<double> decode_each(const Tensor& from, Decode&& decode) {
  const auto values = from.as<T>();
  std::vector<double> out(values.size());
  std::ranges::transform(values, out.begin(), decode);
  return out;
}

}  // namespace

std::string_view to_string(TensorType type) { return row(type).name; }
std::int64_t element_bytes(TensorType type) { return row(type).bytes; }
TensorType tensor_type(Dtype dtype) {
  return dtype == Dtype::bf16 ? TensorType::bf16 : TensorType::fp16;
}

std::int64_t TensorSpec::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

std::vector<Tensor> make_tensors(std::span<const TensorSpec> specs) {
  std::vector<Tensor> tensors;
  tensors.reserve(specs.size());
  for (const TensorSpec& spec : specs) tensors.emplace_back(spec);
  return tensors;
}

const Tensor* find_tensor(std::span<const Tensor> tensors, std::string_view name) {
  const auto found =
      std::ranges::find_if(tensors, [&](const Tensor& t) { return t.spec.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

const Tensor& tensor_named(std::span<const Tensor> tensors, std::string_view name) {
  if (const Tensor* found = find_tensor(tensors, name)) return *found;
  throw InputError("tensors", "none is called " + std::string(name), "give it");
}

void poison(Tensor& tensor) {
  switch (tensor.spec.type) {
    case TensorType::fp32:
      std::ranges::fill(tensor.as<float>(), std::numeric_limits<float>::quiet_NaN());
      return;
    case TensorType::fp64:
      std::ranges::fill(tensor.as<double>(), std::numeric_limits<double>::quiet_NaN());
      return;
    case TensorType::bf16:
    case TensorType::fp16:
      std::ranges::fill(tensor.as<std::uint16_t>(), std::uint16_t{0x7FFF});
      return;
    case TensorType::int32:
      std::ranges::fill(tensor.as<std::int32_t>(), std::numeric_limits<std::int32_t>::min());
      return;
    case TensorType::int8:  // codes are symmetric about 0
      std::ranges::fill(tensor.as<std::int8_t>(), std::int8_t{-128});
      return;
    case TensorType::e4m3fn:
      std::ranges::fill(tensor.as<std::uint8_t>(), std::uint8_t{0x7F});
      return;
    case TensorType::e4m3fnuz:
      std::ranges::fill(tensor.as<std::uint8_t>(), std::uint8_t{0x80});
      return;
    case TensorType::e8m0:
      std::ranges::fill(tensor.as<std::uint8_t>(), std::uint8_t{0xFF});
      return;
    case TensorType::packed:
      return;
  }
}

std::vector<double> decoded(const Tensor& from) {
  switch (from.spec.type) {
    case TensorType::fp32:
      return decode_each<float>(from, [](float v) -> double { return v; });
    case TensorType::fp64:
      return decode_each<double>(from, [](double v) { return v; });
    case TensorType::bf16:
    case TensorType::fp16: {
      const Dtype dtype = from.spec.type == TensorType::bf16 ? Dtype::bf16 : Dtype::fp16;
      return decode_each<std::uint16_t>(
          from, [dtype](std::uint16_t v) -> double { return to_float(dtype, v); });
    }
    case TensorType::int32:
      return decode_each<std::int32_t>(from, [](std::int32_t v) -> double { return v; });
    case TensorType::int8:
      return decode_each<std::int8_t>(from, [](std::int8_t v) -> double { return v; });
    case TensorType::e4m3fn:
      return decode_each<std::uint8_t>(from,
                                       [](std::uint8_t v) -> double { return kE4m3fnValues[v]; });
    case TensorType::e4m3fnuz:
      return decode_each<std::uint8_t>(from,
                                       [](std::uint8_t v) -> double { return kE4m3fnuzValues[v]; });
    case TensorType::e8m0:
      return decode_each<std::uint8_t>(from,
                                       [](std::uint8_t v) -> double { return e8m0_to_float(v); });
    case TensorType::packed:
      break;
  }
  throw InputError(from.spec.name, "packed elements have no value of their own",
                   "decode them by their scheme");
}

}  // namespace moegauge
