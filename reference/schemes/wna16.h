// For w4a16.cc and w8a16.cc: group-quantised integer weights, w = (q - zero) * scale, with
// activations left in the layer's 16-bit type.
//
// Canonical storage, groups G = ceil(cols / group):
//   values       int4: [rows, ceil(cols / 2)], low nibble = even column; int8: [rows, cols];
//   unsigned scales       [rows, G] in the activation dtype zero_points  "zp" only; int4:
//   [ceil(rows / 2), G], low nibble = even row; int8: [rows, G].
//                Without: 8 (int4) or 128 (int8) everywhere.
//   group_index  "actorder" only: int32 [cols], the group of each column.
#pragma once

#include "reference/schemes/family.h"
#include "reference/schemes/scheme.h"

namespace moegauge {

struct WnA16Spec {
  std::string_view family;
  std::string_view config_dtype;
  int bits = 4;              // 4 or 8
  std::int64_t group = 128;  // columns; 0: the whole row ("channel")
  bool zero_points = false;
  bool act_order = false;
};

// Reads [_g32|_g64|_g128|_channel][_zp][_actorder] into a scheme; group 128 where none is named.
std::unique_ptr<const Scheme> make_wna16(WnA16Spec spec, SchemeOptions& options);
inline constexpr std::string_view kWnA16Options = "[_g32|_g64|_g128|_channel][_zp][_actorder]";

}  // namespace moegauge
