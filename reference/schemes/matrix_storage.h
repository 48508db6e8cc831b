// One quantised matrix in canonical storage, owned.
#pragma once

#include <memory>

#include "reference/schemes/scheme.h"

namespace moegauge {

class MatrixStorage {
 public:
  // Uninitialised, of scheme.weight_bytes(shape).
  MatrixStorage(const Scheme& scheme, const MatrixShape& shape)
      : shape_(shape),
        bytes_(scheme.weight_bytes(shape)),
        data_(std::make_unique_for_overwrite<std::byte[]>(
            padded(bytes_.values) + padded(bytes_.scales) + padded(bytes_.zero_points) +
            bytes_.group_index)) {}

  const MatrixBytes& bytes() const { return bytes_; }
  Matrix view() { return make<std::byte>(); }
  ConstMatrix view() const { return make<const std::byte>(); }

 private:
  // Parts begin at multiples of 16, enough for every element type they hold.
  static std::size_t padded(std::size_t n) { return (n + 15) / 16 * 16; }

  template <typename Byte>
  BasicMatrix<Byte> make() const {
    Byte* next = data_.get();
    const auto part = [&next](std::size_t n) {
      const std::span<Byte> span(next, n);
      next += padded(n);
      return span;
    };
    BasicMatrix<Byte> matrix = {.shape = shape_};
    matrix.values = part(bytes_.values);
    matrix.scales = part(bytes_.scales);
    matrix.zero_points = part(bytes_.zero_points);
    matrix.group_index = {next, bytes_.group_index};
    return matrix;
  }

  MatrixShape shape_;
  MatrixBytes bytes_;
  std::unique_ptr<std::byte[]> data_;
};

}  // namespace moegauge
