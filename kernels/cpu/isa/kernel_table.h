// What one instruction-set level offers: plain functions over plain data. Each level is one
// translation unit with its own -m flags (kernels_*.cc), in which everything but the table itself
// has internal linkage: no inline function that was compiled for a wider instruction set can be
// picked by the linker for code that runs on a narrower one.
//
// Shared vocabulary of every level:
//   step    4 bytes of one activation row, the unit that a kernel broadcasts: one fp32 value, or
//           two bf16 values where the level has a bf16 dot instruction (DotUnit).
//   row     activations in steps, padded with zeros to a multiple of kPadElements elements.
//   vector  16 output columns. A tile is 2 or 4 vectors; in w13 the vectors of a tile alternate
//           gate, up, gate, up.
//   packed weights of a tile: for each run of codec-dependent length along the contracted dimension
//           and each vector, 64 bytes, in the order of WeightLayout::order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace moegauge::cpu {

inline constexpr int kVector = 16;       // output columns of one vector
inline constexpr int kPadElements = 32;  // rows and packed weights are padded to a multiple of this
inline constexpr int kMaxTileVectors = 4;  // vectors of a full tile
inline constexpr int kRowBlock = 12;       // rows that one register tile covers at most

enum class WeightCodec : std::uint8_t { bf16, fp16, e4m3fn };
inline constexpr int kWeightCodecs = 3;

enum class DotUnit : std::uint8_t { fp32, bf16_pair };
constexpr int elements_per_step(DotUnit unit) { return unit == DotUnit::fp32 ? 1 : 2; }

// How activations are rounded on their way into a GEMM.
enum class ActivationCodec : std::uint8_t { bf16, fp16, e4m3fn };

enum class NarrowType : std::uint8_t { bf16, fp16 };
enum class Fp8Type : std::uint8_t { e4m3fn, e4m3fnuz };

struct WeightLayout {
  int element_bytes = 0;
  int run = 0;  // elements along the contracted dimension in 64 bytes of one vector
  // order[column * run + k]: the element's place within the 64 bytes.
  const std::uint8_t* order = nullptr;
};

// Rows [0, rows) of activations times one tile of packed weights, sums in fp32 (a product is exact,
// and so is each row independent of its neighbours and of their number).
struct GemmArgs {
  const float* a = nullptr;        // packed by pack_rows
  const float* a_scale = nullptr;  // [scale groups][rows], or nullptr
  std::int64_t rows = 0;
  DotUnit unit = DotUnit::fp32;
  const std::byte* w = nullptr;    // the tile's first byte
  const float* w_scale = nullptr;  // [scale groups][vectors][scale_lanes], or nullptr
  int vectors = 0;                 // 2 or 4
  int scale_lanes = 1;             // 1: one scale per vector, 16: one per column
  std::int64_t elements = 0;       // contracted length, padded
  std::int64_t group = 0;          // contracted elements per scale group; 0: no scales
  std::int64_t block = 0;  // contracted elements decoded at a time, a multiple of 32 and of group
  std::int64_t prefetch = 0;  // bytes of packed weights fetched ahead
  float* panel = nullptr;     // scratch: panel_floats(block)
  float* c = nullptr;         // [rows][vectors * 16], overwritten
};
constexpr std::int64_t panel_floats(std::int64_t block) {
  return block * 2 * kVector;  // half a tile at a time
}

enum class ActivationFunction : std::uint8_t { silu, gelu_erf, gelu_tanh, swiglu_clamped };

// c [rows][vectors * 16] of a w13 tile -> out [rows][ld], vectors / 2 * 16 columns.
struct ActivateArgs {
  const float* c = nullptr;
  std::int64_t rows = 0;
  int vectors = 0;
  const float* bias = nullptr;        // [vectors * 16] in the order of c, or nullptr
  const float* row_weight = nullptr;  // [rows], multiplies c first, or nullptr
  ActivationFunction function = ActivationFunction::silu;
  float alpha = 0, beta = 0, limit = 0;
  float* out = nullptr;
  std::int64_t ld = 0;
};

// One row of fp32 values rounded into steps.
struct EncodeArgs {
  const float* in = nullptr;
  std::int64_t elements = 0;
  std::int64_t padded = 0;  // elements of `out` to write, zeros beyond `elements`
  ActivationCodec codec = ActivationCodec::bf16;
  DotUnit unit = DotUnit::fp32;
  std::int64_t group = 0;   // elements per scale, starting at in[0]; 0: no scales
  float amax_floor = 0;     // scale = max(amax, floor) / 448
  float* out = nullptr;     // steps
  float* scales = nullptr;  // [ceil(elements / group)]
};

struct KernelTable {
  const char* name;
  bool fused_multiply_add;  // of the fp32 dot
  DotUnit (*dot_unit)(ActivationCodec codec);
  WeightLayout (*weight_layout)(WeightCodec codec, DotUnit unit);

  // `count` pointers to activation rows -> `out`, the order that gemm reads: blocks of at most
  // kRowBlock rows, within a block 16 steps of each row in turn. steps is a multiple of 16.
  void (*pack_rows)(const float* const* rows, std::int64_t count, std::int64_t steps, float* out);
  void (*gemm)(WeightCodec codec, const GemmArgs& args);
  void (*activate)(const ActivateArgs& args);
  void (*encode)(const EncodeArgs& args);
  // c [rows][columns of the tile], first `columns` used: out[r * ld + j] = (c + bias) * weight[r].
  // bias, weight may be nullptr.
  void (*store_pairs)(const float* c, std::int64_t rows, std::int64_t stride, std::int64_t columns,
                      const float* bias, const float* weight, float* const* out);
  // y[j] = sum over the `count` rows in their order, rounded once.
  void (*reduce)(const float* const* rows, std::int64_t count, std::int64_t columns,
                 NarrowType type, std::uint16_t* y);

  // Bulk conversions, bit-identical to reference/formats.
  void (*widen)(NarrowType type, const std::uint16_t* in, std::int64_t n, float* out);
  void (*narrow)(NarrowType type, const float* in, std::int64_t n, std::uint16_t* out);
  void (*decode_fp8)(Fp8Type type, const std::uint8_t* in, std::int64_t n, float* out);
  void (*encode_fp8)(Fp8Type type, float maximum, const float* in, std::int64_t n,
                     std::uint8_t* out);

  // Ceilings. Sum of all 32-bit words of `bytes` (a multiple of 256) bytes.
  std::uint64_t (*sum)(const std::byte* data, std::int64_t bytes);
  // Runs `iterations` of independent dot instructions on registers; returns floating-point
  // operations done.
  double (*dot_loop)(DotUnit unit, std::int64_t iterations);
};

const KernelTable& portable_kernels();
#if defined(__x86_64__)
const KernelTable& avx2_kernels();
const KernelTable& avx512_kernels();
const KernelTable& avx512_bf16_kernels();
#endif

}  // namespace moegauge::cpu
