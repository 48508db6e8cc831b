// Integer weights of a layer: random codes, and the chunks that the kernels read.
#include <algorithm>
#include <numeric>
#include <random>

#include "kernels/cuda/bench/bench.h"
#include "kernels/device/numeric.h"

namespace bench {
namespace {

__device__ uint64_t mix_bits(uint64_t v) {
  v = (v ^ (v >> 33)) * 0xff51afd7ed558ccdull;
  v = (v ^ (v >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return v ^ (v >> 33);
}

__global__ void fill_codes(uint8_t* dst, size_t count, uint64_t seed, int bits) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
    dst[i] = static_cast<uint8_t>(mix_bits(seed * 0x9e3779b97f4a7c15ull + i) >> (64 - bits));
}
// Zero points near the middle. Scales spread over 2^-1..2^1 around `centre`, so that a shifted one shows.
__global__ void fill_groups(uint16_t* scales, uint8_t* zeros, size_t count, uint64_t seed, int bits, float centre, bool exact) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) {
    const uint64_t r = mix_bits(seed * 0x9e3779b97f4a7c15ull + i);
    const float spread = static_cast<uint32_t>(r) * 2.3283064e-10f;
    const float scale = exact ? exp2f(-6.0f - float(r & 1)) : centre * exp2f(2.0f * spread - 1.0f);
    scales[i] = static_cast<uint16_t>(moe::pack_bf16(scale, 0.0f));
    if (zeros) zeros[i] = static_cast<uint8_t>((1 << (bits - 1)) + int(r >> 62) - 2);
  }
}

struct Packing {
  IntMatrix matrix;
  int bits, group, experts, columns, groups;
  bool gate_up;
  int inter, hidden;
  const int *row_order, *column_order;  // [E, ..] or null: as it is
};

// A thread a word of codes; the first of each chunk's threads also place its scales and zero points.
__global__ void pack(Packing p) {
  const int chunk_bytes = moe::int_chunk_bytes(p.bits, p.group, p.matrix.zeros != nullptr), words = moe::int_code_bytes(p.bits) / 4;
  const int steps = (p.columns + 127) / 128, tiles = p.gate_up ? (p.inter + 127) / 128 : (p.hidden + 255) / 256;
  const size_t chunk = blockIdx.x;
  const int step = int(chunk % steps), tile = int(chunk / steps % tiles), expert = int(chunk / steps / tiles);
  const int rows = p.gate_up ? 2 * p.inter : p.hidden;
  uint8_t* out = p.matrix.chunks + chunk * chunk_bytes;
  // Row of the matrix, or -1 outside it.
  auto row_of = [&](int in_tile) {
    const int box = in_tile / 128, limit = p.gate_up ? p.inter : p.hidden;
    int r = p.gate_up ? tile * 128 + in_tile % 128 : tile * 256 + in_tile;
    if (r >= limit) return -1;
    if (p.row_order) r = p.row_order[size_t(expert) * limit + r];
    return p.gate_up ? box * p.inter + r : r;
  };
  auto zero_of = [&](int row, int g) {
    return row < 0 || g >= p.groups || !p.matrix.zeros ? 1 << (p.bits - 1) : int(p.matrix.zeros[(size_t(expert) * rows + row) * p.groups + g]);
  };
  for (int w = threadIdx.x; w < words; w += blockDim.x) {
    uint32_t word = 0;
    for (int slot = 0; slot < 32 / p.bits; ++slot) {
      const moe::IntElement at = moe::int_element(p.bits, w, slot);
      const int row = row_of(at.row), place = step * 128 + at.column;
      int code = zero_of(row, place / p.group);
      if (row >= 0 && place < p.columns) {
        const int column = p.column_order ? p.column_order[size_t(expert) * p.columns + place] : place;
        code = p.matrix.codes[(size_t(expert) * rows + row) * p.columns + column];
      }
      word |= uint32_t(code) << (slot * p.bits);
    }
    reinterpret_cast<uint32_t*>(out)[w] = word;
  }
  const int groups = 128 / p.group;
  for (int i = threadIdx.x; i < groups * 256; i += blockDim.x) {
    const int g = step * groups + i / 256, row = row_of(i % 256), to = i / 256 * 256 + moe::int_scale_place(i % 256);
    uint16_t* scales = reinterpret_cast<uint16_t*>(out + words * 4);
    scales[to] = row < 0 || g >= p.groups ? uint16_t(0) : p.matrix.scales[(size_t(expert) * rows + row) * p.groups + g];
    if (p.matrix.zeros) out[words * 4 + groups * 512 + to] = uint8_t(zero_of(row, g));
  }
}

template <typename T>
T* upload(const std::vector<T>& host) {
  T* device = nullptr;
  CUDA_CHECK(cudaMalloc(&device, host.size() * sizeof(T)));
  CUDA_CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

// For each expert its columns in an arbitrary order, cut into groups.
std::vector<int> scattered_order(int experts, int columns, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int> order(size_t(experts) * columns);
  for (int e = 0; e < experts; ++e) {
    const auto first = order.begin() + std::ptrdiff_t(e) * columns;
    std::iota(first, first + columns, 0);
    std::shuffle(first, first + columns, random);
  }
  return order;
}
int* group_of_columns(const std::vector<int>& order, int columns, int group) {
  std::vector<int> group_of(order.size());
  for (size_t i = 0; i < order.size(); ++i) group_of[i / columns * columns + order[i]] = int(i % columns) / group;
  return upload(group_of);
}

void fill(IntMatrix& m, const Layer& l, int rows, int columns, uint64_t seed, bool exact) {
  const size_t codes = size_t(l.experts_local) * rows * columns, groups = size_t(l.experts_local) * rows * ((columns + l.group - 1) / l.group);
  CUDA_CHECK(cudaMalloc(&m.codes, codes));
  CUDA_CHECK(cudaMalloc(&m.scales, groups * 2));
  if (l.zero_points) CUDA_CHECK(cudaMalloc(&m.zeros, groups));
  fill_codes<<<2048, 256>>>(m.codes, codes, seed, l.int_bits());
  // Uniform codes have a deviation of 2^bits / sqrt(12).
  const float centre = 3.46f / float(1 << l.int_bits()) / std::sqrt(float(columns));
  fill_groups<<<512, 256>>>(m.scales, m.zeros, groups, seed + 1, l.int_bits(), centre, exact);
}

}  // namespace

void make_int_weights(Weights& w, const Layer& l, uint64_t seed, bool exact) {
  std::vector<int> order13, order2;
  int *device13 = nullptr, *device2 = nullptr;
  fill(w.int13, l, 2 * l.inter, l.hidden, seed, exact);
  fill(w.int2, l, l.hidden, l.inter, seed + 2, exact);
  if (l.ordered) {
    order13 = scattered_order(l.experts_local, l.hidden, seed + 4);
    order2 = scattered_order(l.experts_local, l.inter, seed + 5);
    w.int13.group_of = group_of_columns(order13, l.hidden, l.group);
    w.int2.group_of = group_of_columns(order2, l.inter, l.group);
    w.x_order = upload(std::vector<uint16_t>(order13.begin(), order13.end()));
    device13 = upload(order13);
    device2 = upload(order2);
  }
  auto pack_matrix = [&](IntMatrix& m, bool gate_up, int columns, const int* rows, const int* in_rows) {
    const int steps = (columns + 127) / 128, tiles = gate_up ? (l.inter + 127) / 128 : (l.hidden + 255) / 256;
    const size_t chunks = size_t(l.experts_local) * tiles * steps;
    CUDA_CHECK(cudaMalloc(&m.chunks, chunks * moe::int_chunk_bytes(l.int_bits(), l.group, l.zero_points)));
    pack<<<unsigned(chunks), 256>>>({m, l.int_bits(), l.group, l.experts_local, columns, (columns + l.group - 1) / l.group, gate_up,
                                     l.inter, l.hidden, rows, in_rows});
  };
  // The activation comes out in the order in which the down projection reads it.
  pack_matrix(w.int13, true, l.hidden, device2, device13);
  pack_matrix(w.int2, false, l.inter, nullptr, device2);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  for (int* p : {device13, device2})
    if (p) CUDA_CHECK(cudaFree(p));
}
void free_int_weights(Weights& w) {
  for (IntMatrix* m : {&w.int13, &w.int2})
    for (void* p : {static_cast<void*>(m->codes), static_cast<void*>(m->zeros), static_cast<void*>(m->scales),
                    static_cast<void*>(m->group_of), static_cast<void*>(m->chunks)})
      if (p) CUDA_CHECK(cudaFree(p));
  if (w.x_order) CUDA_CHECK(cudaFree(w.x_order));
}

}  // namespace bench
