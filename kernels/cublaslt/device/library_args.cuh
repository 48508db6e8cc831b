// What the kernels around the library's GEMMs take beside LayerArgs. Compiled by host and device.
#pragma once
#include "kernels/device/platform.h"

namespace moe {

constexpr int kAroundThreads = 256;

struct LibraryArgs {
  const void* gate_up;  // [rows, 2N] in canonical order of w13's rows: 16 bits, or fp32 (kWide)
  u16* h;               // [rows, N] 16 bits: what is multiplied, or waits for its scale
  u8* h_codes;          // [rows, N] quantised
  float* h_scale;       // block: [ceil(N/128), row_pitch]; else [row_pitch], or one for all rows
  u32* h_amax;          // bits of the largest magnitude of h, zeroed before each call
  const u16* down;      // [rows, K] 16 bits
};

// One expert's matrix of small integers, canonical storage (reference/schemes/wna16.h).
struct IntegerArgs {
  const u8* codes;
  const u16* scales;       // [rows, scales_of_row]
  const u8* zero_points;   // null: the middle code
  const int* group_index;  // [columns]; null: column / group
  u16* out;                // [rows, columns]
  int rows, columns, group, scales_of_row, bits;
};

// Scales of rows, regrouped as the library reads them: those of each expert begin at a multiple of
// four rows, [units, rows of the expert rounded up to four].
struct RegroupArgs {
  const float* from;  // [units, row_pitch]
  float* to;
  const int* expert_rows;
  int units, row_pitch;
};

}  // namespace moe
