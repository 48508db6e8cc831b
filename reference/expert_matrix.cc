#include "reference/expert_matrix.h"

#include <algorithm>

namespace moegauge {
namespace {

std::size_t elements(std::span<const RowRange> parts, std::int64_t cols) {
  std::int64_t rows = 0;
  for (const RowRange& part : parts) rows += part.end - part.begin;
  return static_cast<std::size_t>(rows * cols);
}

// fn(part, its place in `all`).
template <typename T, typename Fn>
void for_each_part(std::span<const RowRange> parts, std::int64_t cols, std::span<T> all, Fn&& fn) {
  for (const RowRange& part : parts) {
    const std::size_t size = elements({&part, 1}, cols);
    fn(part, all.first(size));
    all = all.subspan(size);
  }
}

template <typename T>
std::span<T> beginning(std::vector<T>& buffer, std::size_t size) {
  if (buffer.size() < size) buffer.resize(size);
  return std::span(buffer).first(size);
}

}  // namespace

ExpertMatrix::ExpertMatrix(const Scheme& scheme, const ExpertSource& source, std::int64_t expert,
                           const MatrixShape& shape)
    : scheme_(scheme), source_(source), expert_(expert), shape_(shape), quantized_(scheme, shape) {
  source_.quantized(expert_, quantized_.view());
}

double* ExpertMatrix::emulated(std::span<const RowRange> parts, std::vector<double>& buffer) const {
  const auto out = beginning(buffer, elements(parts, shape_.cols));
  for_each_part(parts, shape_.cols, out, [&](const RowRange& part, std::span<double> place) {
    scheme_.dequantize_weight(quantized_.view(), part.begin, part.end, place);
  });
  return out.data();
}

double* ExpertMatrix::original(std::span<const RowRange> parts, std::vector<float>& floats,
                               std::vector<double>& buffer) const {
  const auto values = beginning(floats, elements(parts, shape_.cols));
  for_each_part(parts, shape_.cols, values, [&](const RowRange& part, std::span<float> place) {
    source_.original(expert_, shape_, part.begin, part.end, place);
  });
  const auto out = beginning(buffer, values.size());
  std::ranges::copy(values, out.begin());
  return out.data();
}

}  // namespace moegauge
