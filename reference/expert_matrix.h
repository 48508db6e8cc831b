// For oracle.cc: one expert's w13 or w2 in canonical storage, read block by block in full
// precision.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/schemes/matrix_storage.h"
#include "reference/schemes/scheme.h"

namespace moegauge {

// Rows [begin, end) of a matrix.
struct RowRange {
  std::int64_t begin = 0, end = 0;
};

class ExpertMatrix {
 public:
  // Asks the source for the quantised matrix. Both are kept by reference.
  ExpertMatrix(const Scheme& scheme, const ExpertSource& source, std::int64_t expert,
               const MatrixShape& shape);

  // The parts one after the other, row-major, as a kernel sees them, exact; or before quantisation.
  // They lie at the beginning of `buffer`, which is grown where it is too small.
  double* emulated(std::span<const RowRange> parts, std::vector<double>& buffer) const;
  double* original(std::span<const RowRange> parts, std::vector<float>& floats,
                   std::vector<double>& buffer) const;

 private:
  const Scheme& scheme_;
  const ExpertSource& source_;
  std::int64_t expert_;
  MatrixShape shape_;
  MatrixStorage quantized_;
};

}  // namespace moegauge
