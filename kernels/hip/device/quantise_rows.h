// Rows of activations as the matrix instructions take them: x before the first GEMM and, where its
// epilogue could not, what the activation function made, before the second. A block a row.
#pragma once
#include "kernels/hip/device/config.h"
#include "kernels/hip/device/formats.h"

namespace moe {

enum class Source : int { x, h };
// Columns that share a scale: 128 (1 x 128 groups), the row, or everything (the scale is known).
enum class Unit : int { group, row, tensor };

struct Vec8 {
  float v[8];
};

struct alignas(16) Halves8 {
  u16 v[8];
};

// Elements of the row from column k on; zeros from `columns` on. Rows and k are multiples of 8.
template <bool kWide>
MOE_DEVICE Vec8 load_columns(const LayerArgs& args, const void* rows, i64 first, int k,
                             int columns) {
  Vec8 r = {};
  if constexpr (kWide) {
    const float* from = static_cast<const float*>(rows) + first + k;
#pragma unroll
    for (int i = 0; i < 8; ++i) r.v[i] = k + i < columns ? from[i] : 0.0f;
  } else {
    if (k >= columns) return r;
    const Halves8 h = *reinterpret_cast<const Halves8*>(static_cast<const u16*>(rows) + first + k);
#pragma unroll
    for (int i = 0; i < 8; ++i) r.v[i] = k + i < columns ? half_to_float(h.v[i], args.fp16) : 0.0f;
  }
  return r;
}

// Bits of the largest magnitude; in `finite` without NaN and infinity.
MOE_DEVICE u32 largest(const Vec8& a, u32& finite) {
  u32 all = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    all = max(all, __float_as_uint(fabsf(a.v[i])));
    finite = max(finite, __float_as_uint(finite_magnitude(a.v[i])));
  }
  return all;
}

template <class A, bool kInt8>
MOE_DEVICE u64 encode8(const Vec8& a, float scale, float maximum) {
  const float inverse = 1.0f / scale;
  u64 codes = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float q = divide_by_scale(a.v[i], scale, inverse);
    const u8 code = kInt8 ? encode_int8(q) : encode_fp8<A::kFnuz>(q, maximum);
    codes |= static_cast<u64>(code) << (8 * i);
  }
  return codes;
}

struct RowShared {
  u32 all[kPrepareThreads / 32], finite[kPrepareThreads / 32];
};

// The block's maxima, in every thread.
template <class A>
MOE_DEVICE void largest_of_block(RowShared& lds, u32& all, u32& finite) {
  const int thread = gpu::thread();
#pragma unroll
  for (int d = 1; d < A::kLanes; d *= 2) {
    all = max(all, gpu::shuffle_xor(all, d));
    finite = max(finite, gpu::shuffle_xor(finite, d));
  }
  if (thread % A::kLanes == 0) {
    lds.all[thread / A::kLanes] = all;
    lds.finite[thread / A::kLanes] = finite;
  }
  gpu::sync();
#pragma unroll
  for (int w = 0; w < kPrepareThreads / A::kLanes; ++w) {
    all = max(all, lds.all[w]);
    finite = max(finite, lds.finite[w]);
  }
}

// One row and where it goes.
struct RowPlace {
  const void* from;
  i64 first;  // element of `from`
  int row, rows, columns, pitch;
  u8* to;
  float* scale;
};
template <Source kSource>
MOE_DEVICE RowPlace place_of_row(const LayerArgs& args) {
  const int row = gpu::block();
  if constexpr (kSource == Source::x) {
    return {args.x,      static_cast<i64>(row) * args.hidden,
            row,         args.tokens,
            args.hidden, args.x_pitch,
            args.x_rows, args.x_scale};
  } else {
    return {args.h_wide, static_cast<i64>(row) * args.h_pitch,
            row,         args.pairs,
            args.inter,  args.h_pitch,
            args.h_rows, args.h_scale};
  }
}

// int8 has no NaN: a row with one gets it as its scale.
MOE_DEVICE float row_scale(const LayerArgs& args, u32 all, u32 finite, bool is_int8) {
  if (is_int8 && all > 0x7f800000u) return __uint_as_float(0x7fc00000u);
  return activation_scale(args, __uint_as_float(finite));
}

// Rows of h from the last expert's end on are nobody's.
template <Source kSource>
MOE_DEVICE bool is_row(const LayerArgs& args) {
  return kSource == Source::x || gpu::block() < args.first_row[args.experts];
}

// The largest finite magnitude of a whole tensor, for one scale of it.
template <class A, Source kSource>
MOE_DEVICE void tensor_amax(const LayerArgs& args) {
  MOE_LDS(RowShared, lds);
  if (!is_row<kSource>(args)) return;
  const RowPlace at = place_of_row<kSource>(args);
  u32 all = 0, finite = 0;
  for (int k = gpu::thread() * 8; k < at.columns; k += kPrepareThreads * 8)
    largest(load_columns<false>(args, at.from, at.first, k, at.columns), finite);
  largest_of_block<A>(lds, all, finite);
  if (gpu::thread() == 0) atomicMax(&args.amax[kSource == Source::x ? 0 : 1], finite);
}

template <class A, Source kSource, Unit kUnit, bool kInt8, bool kWide>
MOE_DEVICE void quantise_row(const LayerArgs& args) {
  MOE_LDS(RowShared, lds);
  if (!is_row<kSource>(args)) return;  // the same for all threads
  const RowPlace at = place_of_row<kSource>(args);
  const int thread = gpu::thread();
  float scale = 0.0f;
  if constexpr (kUnit == Unit::row) {
    u32 all = 0, finite = 0;
    for (int k = thread * 8; k < at.columns; k += kPrepareThreads * 8)
      all = max(all, largest(load_columns<kWide>(args, at.from, at.first, k, at.columns), finite));
    largest_of_block<A>(lds, all, finite);
    scale = row_scale(args, all, finite, kInt8);
  } else if constexpr (kUnit == Unit::tensor) {
    const float fixed = kSource == Source::x ? args.fixed_x_scale : args.fixed_h_scale;
    const u32 amax = args.amax[kSource == Source::x ? 0 : 1];
    scale = fixed > 0.0f ? fixed : activation_scale(args, __uint_as_float(amax));
  }
  if (kUnit != Unit::group && thread == 0) at.scale[at.row] = scale;
  // Whole waves go round together, because they exchange values.
  for (int base = 0; base < at.pitch; base += kPrepareThreads * 8) {
    const int k = base + thread * 8;
    const Vec8 values = load_columns<kWide>(args, at.from, at.first, k, at.columns);
    if constexpr (kUnit == Unit::group) {  // 16 lanes hold a group
      u32 finite = 0;
      largest(values, finite);
#pragma unroll
      for (int d = 1; d < 16; d *= 2) finite = max(finite, gpu::shuffle_xor(finite, d));
      scale = activation_scale(args, __uint_as_float(finite));
      if (thread % 16 == 0 && k < at.pitch)
        at.scale[static_cast<i64>(k / 128) * at.rows + at.row] = scale;
    }
    if (k < at.pitch)
      *reinterpret_cast<u64*>(at.to + static_cast<i64>(at.row) * at.pitch + k) =
          encode8<A, kInt8>(values, scale, args.maximum);
  }
}

// 16-bit rows that only have to be padded to whole steps.
MOE_DEVICE void pad_row(const LayerArgs& args) {
  const int row = gpu::block();
  u16* to = reinterpret_cast<u16*>(args.x_rows + static_cast<i64>(row) * args.x_pitch);
  const u16* from = args.x + static_cast<i64>(row) * args.hidden;
  for (int k = gpu::thread(); k < args.x_pitch / 2; k += kPrepareThreads)
    to[k] = k < args.hidden ? from[k] : u16{0};
}

}  // namespace moe
