// Weights of four and eight bits from canonical storage into the chunks that the layer kernel reads
// (../nvidia/device/int_layout.h). Plain CPU code, done once when a layer is loaded.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/base/expected.h"
#include "reference/schemes/scheme.h"

namespace moegauge::cuda {

struct IntFormat {
  int bits = 4;
  std::int64_t group = 128;  // columns of a scale as packed: 32, 64 or 128
  bool per_channel = false;  // one canonical scale a row, repeated for each packed group
  bool zero_points = false;
  bool e2m1 = false;     // floats of four bits with E8M0 scales, which are packed as bf16
  bool ordered = false;  // act_order: columns are sorted by group before they are packed

  friend bool operator==(const IntFormat&, const IntFormat&) = default;
};

// Bytes of one expert's packed matrix, and of one chunk: 256 rows by 128 columns.
std::size_t packed_bytes(const IntFormat& format, const MatrixShape& shape);
std::size_t chunk_bytes(const IntFormat& format);

// The canonical column at each packed place: columns stably sorted by group. Refused, with a
// sentence, where the groups do not all have `group` columns but for the last.
Expected<std::vector<std::int32_t>, std::string> column_order(
    const IntFormat& format, std::span<const std::int32_t> group_of);

// Which canonical row or column is taken for each packed one; empty: they stay as they are. Rows
// count within gate, and the same ones of up, or within w2.
struct PackingOrder {
  std::span<const std::int32_t> rows = {}, columns = {};
};

// `to` has packed_bytes(format, from.shape) bytes.
void pack_integers(const IntFormat& format, const ConstMatrix& from, const PackingOrder& order,
                   std::span<std::byte> to);

}  // namespace moegauge::cuda
