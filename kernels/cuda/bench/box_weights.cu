// Weights that are multiplied as they are, from plain rows into the chunks that the kernels read
// (box_layout.h), and block scales in the order of their tiles.
#include "kernels/cuda/bench/bench.h"

namespace bench {
namespace {

struct Pack {
  const uint8_t* from;  // [E, rows, row_bytes]
  uint8_t* to;
  int rows, row_bytes, part;  // part: rows of gate; 0: the down projection
};

// The row of a tile's row, within its expert; -1 outside the matrix.
__device__ int row_of(int rows, int part, int tile, int in_tile) {
  if (part == 0) return tile * 256 + in_tile < rows ? tile * 256 + in_tile : -1;
  const int row = tile * 128 + in_tile % 128;
  return row < part ? row + in_tile / 128 * part : -1;
}

// One block a chunk.
__global__ void pack(Pack p) {
  const int steps = (p.row_bytes + 127) / 128, tiles = p.part == 0 ? (p.rows + 255) / 256 : (p.part + 127) / 128;
  const int step = int(blockIdx.x % steps), tile = int(blockIdx.x / steps % tiles);
  const size_t expert = blockIdx.x / (steps * tiles);
  for (int i = threadIdx.x; i < 2048; i += blockDim.x) {
    const int row = row_of(p.rows, p.part, tile, i / 8), byte = step * 128 + i % 8 * 16;
    uint4 v = make_uint4(0, 0, 0, 0);
    if (row >= 0 && byte < p.row_bytes) v = *reinterpret_cast<const uint4*>(p.from + (expert * p.rows + row) * p.row_bytes + byte);
    *reinterpret_cast<uint4*>(p.to + blockIdx.x * size_t{moe::kChunkBytes} + moe::piece_place(i / 8, i % 8)) = v;
  }
}

// [E, row blocks, columns] to [E, tiles, 4, columns].
__global__ void pack_scales(const float* from, float* to, int rows, int columns, int part, int tiles, size_t count) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) {
    const int column = int(i % columns), group = int(i / columns % 4), tile = int(i / (size_t(columns) * 4) % tiles);
    const size_t expert = i / (size_t(columns) * 4 * tiles);
    const int row = row_of(rows, part, tile, group * 64);
    to[i] = row < 0 ? 0.0f : from[(expert * ((rows + 127) / 128) + row / 128) * columns + column];
  }
}

uint8_t* packed(const Layer& l, const uint8_t* from, int rows, int columns, int part) {
  const int row_bytes = columns * l.element_bytes(), tiles = part == 0 ? (rows + 255) / 256 : (part + 127) / 128;
  const size_t chunks = size_t(l.experts_local) * tiles * ((row_bytes + 127) / 128);
  uint8_t* to = nullptr;
  CUDA_CHECK(cudaMalloc(&to, chunks * moe::kChunkBytes));
  pack<<<unsigned(chunks), 256>>>({from, to, rows, row_bytes, part});
  return to;
}

float* packed_scales(const Layer& l, const float* from, int rows, int columns, int part) {
  const int across = (columns + 127) / 128, tiles = part == 0 ? (rows + 255) / 256 : (part + 127) / 128;
  const size_t count = size_t(l.experts_local) * tiles * 4 * across;
  float* to = nullptr;
  CUDA_CHECK(cudaMalloc(&to, count * sizeof(float)));
  pack_scales<<<256, 256>>>(from, to, rows, across, part, tiles, count);
  return to;
}

}  // namespace

void pack_weights(Weights& w, const Layer& l) {
  w.w13_chunks = packed(l, w.w13, 2 * l.inter, l.hidden, l.inter);
  w.w2_chunks = packed(l, w.w2, l.hidden, l.inter, 0);
  if (l.scheme == moe::Scheme::fp8_block) {
    w.w13_tile_scale = packed_scales(l, w.w13_scale, 2 * l.inter, l.hidden, l.inter);
    w.w2_tile_scale = packed_scales(l, w.w2_scale, l.hidden, l.inter, 0);
  }
  CUDA_CHECK(cudaGetLastError());
}
void free_packed(Weights& w) {
  for (void* p : {static_cast<void*>(w.w13_chunks), static_cast<void*>(w.w2_chunks), static_cast<void*>(w.w13_tile_scale),
                  static_cast<void*>(w.w2_tile_scale)})
    if (p) CUDA_CHECK(cudaFree(p));
}

}  // namespace bench
