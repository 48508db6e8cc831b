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
inline constexpr int kRareElements = 16;   // along the contracted dimension under one mark
inline constexpr int kRowBlock = 12;       // rows that one register tile covers at most

// int8 and int4 are two's complement.
enum class WeightCodec : std::uint8_t { bf16, fp16, e4m3fn, e4m3fnuz, int8, int4, e2m1 };

enum class DotUnit : std::uint8_t { fp32, bf16_pair };
constexpr int elements_per_step(DotUnit unit) { return unit == DotUnit::fp32 ? 1 : 2; }

// How activations are rounded on their way into a GEMM.
enum class ActivationCodec : std::uint8_t { bf16, fp16, e4m3fn, e4m3fnuz, int8 };

enum class NarrowType : std::uint8_t { bf16, fp16 };
enum class Fp8Type : std::uint8_t { e4m3fn, e4m3fnuz };

// How scales and zero points of weights are held: the narrowest type that holds them exactly, as
// they are read with every group.
enum class ScaleType : std::uint8_t { fp32, bf16, fp16 };
constexpr int scale_bytes(ScaleType type) { return type == ScaleType::fp32 ? 4 : 2; }

struct WeightLayout {
  int element_bits = 0;
  int run = 0;  // elements along the contracted dimension in 64 bytes of one vector
  // order[column * run + k]: the element's place within the 64 bytes, in elements; of two in a byte
  // the lower half comes first.
  const std::uint8_t* order = nullptr;
  // Of 8-bit codes: what is stored in place of each, and which of them are `rare`: elements of a
  // tile that hold such a one are marked (GemmArgs::w_rare). nullptr: stored as they are.
  const std::uint8_t* recoded = nullptr;
  const std::uint8_t* rare = nullptr;
};

// Rows [0, rows) of activations times one tile of packed weights, sums in fp32 (a product is exact,
// and so is each row independent of its neighbours and of their number).
struct GemmArgs {
  const float* a = nullptr;        // packed by pack_rows
  const float* a_scale = nullptr;  // [scale groups][rows], or nullptr
  std::int64_t rows = 0;
  DotUnit unit = DotUnit::fp32;
  const std::byte* w = nullptr;  // the tile's first byte
  // [elements / kRareElements], bit v: vector v holds a rare code there. nullptr where none is
  // rare.
  const std::uint8_t* w_rare = nullptr;
  ScaleType scale_type = ScaleType::fp32;
  const std::byte* w_scale = nullptr;  // [scale groups][vectors][scale_lanes], or nullptr
  // Weights are (code - w_zero) * w_scale: w_zero as w_scale, a_sum [scale groups][rows] the sums
  // of each row's activations over a group, or both nullptr.
  const std::byte* w_zero = nullptr;
  const float* a_sum = nullptr;
  int vectors = 0;            // 2 or 4
  int scale_lanes = 1;        // 1: one scale per vector, 16: one per column
  std::int64_t elements = 0;  // contracted length, padded
  std::int64_t group = 0;     // contracted elements per scale group; 0: all of them
  std::int64_t block = 0;  // contracted elements decoded at a time, a multiple of 32 and of group
  std::int64_t prefetch = 0;  // bytes of packed weights fetched ahead
  float* panel = nullptr;     // scratch: panel_floats(block)
  float* c = nullptr;         // [rows][vectors * 16], overwritten
};
constexpr std::int64_t panel_floats(std::int64_t block) {
  return block * kMaxTileVectors * kVector;  // a whole tile at most
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

// How the scale of a group of activations follows from its largest finite magnitude.
enum class ScalingRule : std::uint8_t {
  none,                // no scale
  given,               // Scaling::given, whatever the group holds
  amax,                // max(max(amax, amax_floor) / maximum, scale_floor)
  power_of_two_ceil,   // 2^ceil(log2(amax / maximum)), as E8M0 holds it
  power_of_two_floor,  // 2^floor(log2(amax)), as E8M0 holds it
};

struct Scaling {
  ScalingRule rule = ScalingRule::none;
  float maximum = 0;  // magnitude to which amax is mapped; FNUZ codes saturate there
  float amax_floor = 0, scale_floor = 0;
  float given = 0;
};

// One row of fp32 values, divided by their group's scale and rounded into steps. An int8 group that
// holds a NaN has a NaN for its scale, as its elements have none.
struct EncodeArgs {
  const float* in = nullptr;
  std::int64_t elements = 0;
  std::int64_t padded = 0;  // elements of `out` to write, zeros beyond `elements`
  ActivationCodec codec = ActivationCodec::bf16;
  DotUnit unit = DotUnit::fp32;
  Scaling scaling = {};
  std::int64_t group = 0;   // elements per scale, starting at in[0]; 0: all
  float* out = nullptr;     // steps
  float* scales = nullptr;  // [ceil(elements / group)], or nullptr
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
  // Largest finite magnitude, and the scale that a rule gives a group with such a one.
  float (*finite_amax)(const float* in, std::int64_t n);
  float (*scale_of)(const Scaling& scaling, float amax);
  // Elements of a row in steps in another order: out's element i is in's element from[i], or zero
  // where that is negative.
  void (*gather_steps)(DotUnit unit, const float* in, const std::int32_t* from, std::int64_t n,
                       float* out);
  // sums[g] of a row's elements [g * group, (g + 1) * group) of `elements`, a multiple of 16.
  void (*sum_groups)(DotUnit unit, const float* steps, std::int64_t elements, std::int64_t group,
                     float* sums);
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
  // Decodes `bytes` (a multiple of 64) of packed weights that hold no rare code, and drops them.
  void (*decode_loop)(WeightCodec codec, DotUnit unit, const std::byte* w, std::int64_t bytes);
};

const KernelTable& portable_kernels();
#if defined(__x86_64__)
const KernelTable& avx2_kernels();
const KernelTable& avx512_kernels();
const KernelTable& avx512_bf16_kernels();
#endif

}  // namespace moegauge::cpu
