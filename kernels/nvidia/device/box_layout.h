// Where weights that are multiplied as they are lie in memory for the layer kernel: as the shared
// memory image of a stage, so that one contiguous copy fetches it. Compiled by host and device.
//
// A matrix is cut into tiles of 256 rows (gate/up: 128 gate rows, then the 128 up rows that go with
// them) and steps of 128 bytes of K. Each (expert, tile, step) is one contiguous chunk: two boxes
// of 128 rows by 128 bytes, whose 16-byte pieces are swizzled as wgmma's 128-byte mode reads them.
// What lies outside the matrix is zero.
#pragma once
#include "kernels/device/platform.h"

namespace moe {

constexpr int kTileRows = 256, kBoxRows = 128, kStepBytes = 128, kPieceBytes = 16;
constexpr int kBoxBytes = kBoxRows * kStepBytes, kChunkBytes = kTileRows * kStepBytes;
// Microscaling: behind the boxes a word for each row of the tile, at int_scale_place(row), with the
// E8M0 scales of the step's four units in its bytes.
constexpr int kMxUnit = 32, kMxScaleBytes = kTileRows * 4;

// Place in a chunk of the 16-byte piece `piece` (0..7) of a row of the tile.
MOE_BOTH constexpr int piece_place(int row, int piece) {
  return row * kStepBytes + (piece ^ (row % 8)) * kPieceBytes;
}

}  // namespace moe
