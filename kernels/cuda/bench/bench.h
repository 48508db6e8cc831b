// Bench of the fused layer kernels: what its parts share.
#pragma once
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/nvidia/device/config.cuh"

#define CUDA_CHECK(call)                                                 \
  do {                                                                   \
    const cudaError_t status_ = (call);                                  \
    if (status_ != cudaSuccess) {                                        \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
                   cudaGetErrorString(status_));                         \
      std::exit(3);                                                      \
    }                                                                    \
  } while (0)

namespace bench {

// A layer's shape; the kernels for it are compiled for exactly this.
struct Layer {
  std::string name;
  moe::Scheme scheme;
  int experts_global, experts_local, hidden, inter, top_k;
  bool weight_on_input;
  // Integer weights: columns of a group, zero points, columns of a group scattered.
  int group = 0;
  bool zero_points = false, ordered = false;

  bool fp8() const { return scheme == moe::Scheme::fp8_block || scheme == moe::Scheme::fp8_ptpc; }
  int int_bits() const {
    return scheme == moe::Scheme::w4a16 ? 4 : scheme == moe::Scheme::w8a16 ? 8 : 0;
  }
  int element_bytes() const { return fp8() ? 1 : 2; }
};

// One compiled configuration of the kernels for one layer.
struct Variant {
  std::string layer;
  int token_tile, stages;
  bool split, promote, token_rows, pairs;
  int dealt, token_box;
  int shared_bytes;
  void (*setup)();  // raises the shared memory limit
  // upto: 1 prepare only, 2 and the layer kernel, 3 all, to place time by difference.
  void (*launch)(const moe::LayerArgs&, cudaStream_t, int blocks, int upto);
  std::string name() const {
    return "t" + std::to_string(token_tile) + "s" + std::to_string(stages) +
           (pairs        ? "-pairs"
            : token_rows ? "-rows"
            : split      ? "-split"
                         : "-turn") +
           (dealt > 99  ? "-dealt"
            : dealt > 1 ? "-dealt" + std::to_string(dealt)
                        : "") +
           (promote ? "" : "-reduced");
  }
};

void add_qwen3(std::vector<Layer>&, std::vector<Variant>&);
void add_deepseek(std::vector<Layer>&, std::vector<Variant>&);
void add_scout(std::vector<Layer>&, std::vector<Variant>&);
void add_mixtral(std::vector<Layer>&, std::vector<Variant>&);
void add_mixtral_int(std::vector<Layer>&, std::vector<Variant>&);
void add_small_int(std::vector<Layer>&, std::vector<Variant>&);
void add_small(std::vector<Layer>&, std::vector<Variant>&);  // odd shapes, for correctness

// One matrix of integer weights, plainly: a byte a code, a scale and a zero point for each row and
// group, the group of each column; and as the kernels read it (int_layout.h).
struct IntMatrix {
  uint8_t *codes = nullptr, *zeros = nullptr;
  uint16_t* scales = nullptr;
  int* group_of = nullptr;  // [E, columns]
  uint8_t* chunks = nullptr;
};
// Weights of one set on the device.
struct Weights {
  uint8_t *w13 = nullptr, *w2 = nullptr;
  float *w13_scale = nullptr, *w2_scale = nullptr;
  // The same as the kernels read them (box_layout.h), and block scales by tile.
  uint8_t *w13_chunks = nullptr, *w2_chunks = nullptr;
  float *w13_tile_scale = nullptr, *w2_tile_scale = nullptr;
  IntMatrix int13, int2;
  uint16_t* x_order = nullptr;  // [E, K]
};
// exact: small integers and power-of-two scales, so that every partial sum of the
// first GEMM is exact however it is added.
Weights make_weights(const Layer&, uint64_t seed, bool exact);
void free_weights(Weights&);
// The part for integer weights, in int_weights.cu.
void make_int_weights(Weights&, const Layer&, uint64_t seed, bool exact);
void free_int_weights(Weights&);
// The part for all others, in box_weights.cu.
void pack_weights(Weights&, const Layer&);
void free_packed(Weights&);

// Inputs and output of one call.
struct Call {
  int tokens = 0;
  uint16_t* x = nullptr;
  int* ids = nullptr;
  float* weights = nullptr;
  uint16_t* y = nullptr;
  std::vector<int> host_ids;
};
// routing: uniform, zipf (exponent 1), single (every token to one expert),
// dropped (uniform with a third of the ids -1).
Call make_call(const Layer&, int tokens, const std::string& routing, uint64_t seed, bool exact);
void free_call(Call&);
int* make_expert_map(const Layer&);  // null when every expert is local

struct Error {
  double relative_l2 = 0, worst_token = 0;
  long long non_finite = 0;
};
// fp64 layer on the device with the same operands and rounding points: [M, K]
// doubles, freed by the caller; and y against it.
double* make_reference(const Layer&, const Weights&, const Call&, const int* expert_map);
Error compare_output(const Layer&, const Call&, const double* reference);

}  // namespace bench
