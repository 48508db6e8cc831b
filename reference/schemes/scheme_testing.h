// For the tests of this folder.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "reference/dtype.h"
#include "reference/schemes/matrix_storage.h"

namespace moegauge::testing_support {

// Sum of twelve uniforms minus six: mean 0, variance 1, close to normal within 6 sigma, and, unlike
// std::normal_distribution, the same on every machine. Rounded to the dtype.
inline std::vector<float> random_values(std::int64_t n, unsigned seed, Dtype dtype = Dtype::bf16) {
  std::mt19937_64 engine(seed);
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& v : values) {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(engine() >> 11) * 0x1p-53;
    v = round_to(dtype, static_cast<float>(sum));
  }
  return values;
}

inline MatrixStorage quantize(const Scheme& scheme, const MatrixShape& shape,
                              const std::vector<float>& w) {
  MatrixStorage storage(scheme, shape);
  scheme.quantize_weight(w, storage.view());
  return storage;
}

inline std::vector<double> dequantize(const Scheme& scheme, const MatrixStorage& storage,
                                      std::int64_t begin, std::int64_t end) {
  const ConstMatrix matrix = storage.view();
  std::vector<double> out(static_cast<std::size_t>((end - begin) * matrix.shape.cols));
  scheme.dequantize_weight(matrix, begin, end, out);
  return out;
}
inline std::vector<double> dequantize(const Scheme& scheme, const MatrixStorage& storage) {
  const MatrixStorage& constant = storage;
  return dequantize(scheme, storage, 0, constant.view().shape.rows);
}

inline std::vector<double> emulate(const Scheme& scheme, const std::vector<float>& x,
                                   const ActivationShape& shape) {
  std::vector<double> out(x.size());
  scheme.emulate_activation(x, shape, out);
  return out;
}

template <typename T>
std::vector<T> read_as(std::span<const std::byte> bytes) {
  const T* const begin = reinterpret_cast<const T*>(bytes.data());
  return {begin, begin + bytes.size() / sizeof(T)};
}

}  // namespace moegauge::testing_support
