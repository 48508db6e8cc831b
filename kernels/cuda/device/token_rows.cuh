// Many tokens an expert: tokens are wgmma's M side. Math warpgroup g takes token
// rows 64g..64g+63 of a tile of 128 and all 256 weight rows (two boxes of 128 as
// wgmma's N), from the same ring as the other operand order. A token's scale and a
// row's maximum then live in one thread or one quad, and the epilogue needs no
// barrier wider than a warp.
#pragma once
#include "kernels/nvidia/device/activation.cuh"
#include "kernels/cuda/device/multiply.cuh"

namespace moe {

// Lane l of warp w holds, for each i and 8 columns j, row 64g + 16w + l/4 + 8i and
// columns 8j + 2(l%4) + {0, 1} in v[4j + 2i + {0, 1}].
using RowTile = float[64];

// What the epilogue needs, loaded before the main loop whose time hides it.
struct RowPrefetch {
  float factor[2] = {1.0f, 1.0f};  // of the thread's two rows
  int token[2] = {0, 0};           // their rows of y
  float channel = 1.0f;            // scale of weight row `thread` of the tile
};

template <class C>
MOE_DEVICE void prefetch_rows(const LayerArgs& args, const Segment& s, const Place& at, RowPrefetch& p) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int in_tile = at.group * 64 + at.warp * 16 + at.lane / 4 + 8 * i;
    p.factor[i] = 1.0f;
    p.token[i] = 0;
    if (in_tile < s.rows) {
      const int row = s.row + in_tile;
      if ((s.phase == 0) == C::kWeightOnInput) p.factor[i] = __ldcg(&args.row_weight[row]);
      if (C::kChannelScales && s.phase == 0) p.factor[i] *= __ldcg(&args.x_scale[row]);
      if (C::kDirect && s.phase == 1) p.token[i] = __ldcg(&args.row_token[row]);
    }
  }
  if constexpr (C::kChannelScales) {
    const int box = at.thread / 128, in_box = at.thread % 128;
    if (s.phase == 0) {
      const int n = min(s.weight_tile * 128 + in_box, C::kInter - 1);
      p.channel = args.w13_scale[static_cast<i64>(s.expert) * 2 * C::kInter + box * C::kInter + n];
    } else {
      const int k = min(s.weight_tile * 256 + at.thread, C::kHidden - 1);
      p.channel = args.w2_scale[static_cast<i64>(s.expert) * C::kHidden + k];
    }
  }
}

// Both boxes, added to what is there; Sum: float, int for int8.
template <class C, class Sum>
MOE_DEVICE void multiply_rows_stage_twice(Sum (&d0)[64], Sum (&d1)[64], u32 tokens, u32 weights) {
  const u32 a = wgmma_descriptor(tokens), b = wgmma_descriptor(weights);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if constexpr (C::kInt8) WgmmaTwice128::s8(d0, d1, a + 2 * k, b + 2 * k, 1);
    else if constexpr (C::kFp8) WgmmaTwice128::e4m3(d0, d1, a + 2 * k, b + 2 * k, 1);
    else if constexpr (C::kFp16) WgmmaTwice128::f16(d0, d1, a + 2 * k, b + 2 * k, 1);
    else WgmmaTwice128::bf16(d0, d1, a + 2 * k, b + 2 * k, 1);
  }
}

// A quarter of a tile's weight rows: 64, of the second half of a box if kHalf.
using RowQuarter = float[32];

template <class C, int kHalf>
MOE_DEVICE void promote_rows(RowTile& sum, const RowQuarter& part, float s0, float s1) {
#pragma unroll
  for (int j = 0; j < 32; j += 4) {
    float* to = sum + kHalf * 32 + j;
    if constexpr (C::kBlockScales) {
      to[0] = fmaf(part[j], s0, to[0]), to[1] = fmaf(part[j + 1], s0, to[1]);
      to[2] = fmaf(part[j + 2], s1, to[2]), to[3] = fmaf(part[j + 3], s1, to[3]);
    } else {
#pragma unroll
      for (int e = 0; e < 4; ++e) to[e] += part[j + e];
    }
  }
}

// Two quarters' products in registers, so that one is added while the other's is under way; instructions that
// narrow read tokens from registers, or shared memory could not keep up with them.
// `busy` is false for a warpgroup whose 64 rows are all past the tile's end.
template <class C>
MOE_DEVICE void multiply_rows_promoted(Ring<C>& ring, int steps, RowTile& sum0, RowTile& sum1, const Place& at, bool busy) {
#pragma unroll
  for (int i = 0; i < 64; ++i) sum0[i] = sum1[i] = 0.0f;
  const u32 row_scale = 16 + (at.group * 64 + at.warp * 16 + at.lane / 4) * 4;
  // The lane's row of the warp's 16 and its chunk of 16 bytes, swizzled; two chunks on at each k.
  const u32 fragment = (at.group * 64 + at.warp * 16 + at.lane % 16) * 128 + ((at.lane / 16 ^ at.lane % 8) << 4);
  u32 tokens[4][4];
  auto multiply = [&](RowQuarter& part, u32 weights) {
    const u32 b = wgmma_descriptor(weights);
    wgmma_pin(part);
    wgmma_begin();
#pragma unroll
    for (int k = 0; k < 4; ++k) Wgmma<64>::e4m3_registers(part, tokens[k], b + 2 * k, k > 0);
    wgmma_commit();
  };
  if (!__any_sync(0xffffffffu, busy)) {
    for (int step = 0; step < steps; ++step, ring.advance()) {
      barrier_wait(ring.full(), ring.parity);
      if (Ring<C>::releases(at.lane)) Ring<C>::release(ring.empty());
    }
    return;
  }
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    RowQuarter part0, part1;
    barrier_wait(ring.full(), ring.parity);
#pragma unroll
    for (int k = 0; k < 4; ++k) load_matrix(tokens[k], ring.tokens() + (fragment ^ k << 5));
    multiply(part0, ring.weights(0));
    multiply(part1, ring.weights(0) + 8192);
    float s00 = 1.0f, s01 = 1.0f, s10 = 1.0f, s11 = 1.0f;
    if constexpr (C::kBlockScales) {
      const u32 scales = ring.scales();
      const float t0 = shared_float(scales + row_scale), t1 = shared_float(scales + row_scale + 32);
      const float w0 = shared_float(scales), w1 = shared_float(scales + 8);
      s00 = t0 * w0, s01 = t1 * w0, s10 = t0 * w1, s11 = t1 * w1;
    }
    wgmma_wait<1>();
    wgmma_pin(part0);
    promote_rows<C, 0>(sum0, part0, s00, s01);
    multiply(part0, ring.weights(1));
    wgmma_wait<1>();
    wgmma_pin(part1);
    promote_rows<C, 1>(sum0, part1, s00, s01);
    multiply(part1, ring.weights(1) + 8192);
    wgmma_wait<1>();
    wgmma_pin(part0);
    promote_rows<C, 0>(sum1, part0, s10, s11);
    wgmma_wait<0>();
    wgmma_pin(part1);
#pragma unroll
    for (int k = 0; k < 4; ++k) wgmma_pin(tokens[k]);  // read until here
    __syncwarp();
    if (Ring<C>::releases(at.lane)) Ring<C>::release(ring.empty());
    ring.advance();
    promote_rows<C, 1>(sum1, part1, s10, s11);
  }
}

template <class C, class Sum>
MOE_DEVICE void multiply_rows_plain(Ring<C>& ring, int steps, Sum (&sum0)[64], Sum (&sum1)[64], const Place& at, bool busy) {
#pragma unroll
  for (int i = 0; i < 64; ++i) sum0[i] = sum1[i] = 0;
  u32 previous = 0;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    barrier_wait(ring.full(), ring.parity);
    if (busy) {
      const u32 a = ring.tokens() + at.group * 8192;
      wgmma_pin(sum0);
      wgmma_pin(sum1);
      wgmma_begin();
      multiply_rows_stage_twice<C>(sum0, sum1, a, ring.weights(0));
      wgmma_commit();
      wgmma_wait<1>();
    }
    if (previous != 0 && Ring<C>::releases(at.lane)) Ring<C>::release(previous);
    previous = ring.empty();
    ring.advance();
  }
  wgmma_wait<0>();
  wgmma_pin(sum0);
  wgmma_pin(sum1);
  if (Ring<C>::releases(at.lane)) Ring<C>::release(previous);
}

template <class C>
MOE_DEVICE void multiply_rows_int8(Ring<C>& ring, int steps, RowTile& sum0, RowTile& sum1, const Place& at, bool busy) {
  int exact0[64], exact1[64];
  multiply_rows_plain<C>(ring, steps, exact0, exact1, at, busy);
#pragma unroll
  for (int i = 0; i < 64; ++i) sum0[i] = __int2float_rn(exact0[i]), sum1[i] = __int2float_rn(exact1[i]);
}

// A warp's 16 rows of one box in 16 bits: dst is (row 0 of the warp, column 0 of the
// box) when row_of is the identity; `limit` columns of the box are in the matrix.
template <class C, class RowOf>
MOE_DEVICE void store_rows_half(const RowTile& v, u8* staging, const Place& at, u16* dst, i64 pitch, int rows, int limit,
                                RowOf row_of) {
  const u32 address = smem_address(staging);
#pragma unroll
  for (int half = 0; half < 2; ++half) {  // 64 columns, 128 bytes a row
    __syncwarp();
#pragma unroll
    for (int j = 0; j < 8; j += 2) {
      const float* p = &v[(half * 8 + j) * 4];
      const int row = at.lane % 8 + ((at.lane / 8) & 1) * 8, chunk = j + at.lane / 16;
      store_matrix(address + row * 128 + ((chunk ^ (row & 7)) << 4), C::H::pack(p[0], p[1]), C::H::pack(p[2], p[3]),
                   C::H::pack(p[4], p[5]), C::H::pack(p[6], p[7]));
    }
    __syncwarp();
    const int chunk = at.lane % 8;
#pragma unroll
    for (int r = at.lane / 8; r < 16; r += 4) {
      const i64 row = row_of(r);
      if (r < rows && half * 64 + chunk * 8 < limit)
        *reinterpret_cast<uint4*>(dst + row * pitch + half * 64 + chunk * 8) =
            *reinterpret_cast<const uint4*>(staging + r * 128 + ((chunk ^ (r & 7)) << 4));
    }
  }
}

// One more gate/up tile of this warpgroup's 64 rows is in memory.
MOE_DEVICE void publish_group(u32* counter, const Place& at) {
  sync_group(at.group);
  if (at.thread % 128 == 0) add_release(counter, 1);  // releases what the barrier gathered
}

template <class C>
MOE_DEVICE void scale_rows(RowTile& v, const float (&factor)[2], const float* channels, int lane) {
#pragma unroll
  for (int j = 0; j < 16; ++j) {
    float2 c = make_float2(1.0f, 1.0f);
    if constexpr (C::kChannelScales) c = *reinterpret_cast<const float2*>(channels + 8 * j + 2 * (lane % 4));
    v[4 * j] *= factor[0] * c.x;
    v[4 * j + 1] *= factor[0] * c.y;
    v[4 * j + 2] *= factor[1] * c.x;
    v[4 * j + 3] *= factor[1] * c.y;
  }
}

// Block FP8: the 128 columns of a row are in a quad: maximum by two shuffles.
template <class C>
MOE_DEVICE void quantise_gate_up_rows(const LayerArgs& args, const Segment& s, RowTile& h, u8* staging, const Place& at) {
  const int warp_row = at.group * 64 + at.warp * 16;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float amax = 0.0f;
#pragma unroll
    for (int e = 0; e < 2; ++e) amax = fmaxf(amax, finite_amax<16, 4>(h + 2 * i + e));
    amax = fmaxf(amax, __shfl_xor_sync(0xffffffffu, amax, 1));
    amax = fmaxf(amax, __shfl_xor_sync(0xffffffffu, amax, 2));
    const float scale = block_scale(amax), inverse = 1.0f / scale;
    const int in_warp = at.lane / 4 + 8 * i;
    if (at.lane % 4 == 0 && warp_row + in_warp < s.rows)
      args.h_scale[static_cast<i64>(s.weight_tile) * args.row_pitch + s.row + warp_row + in_warp] = scale;
#pragma unroll
    for (int j = 0; j < 16; ++j)
      *reinterpret_cast<u16*>(staging + in_warp * C::kQuantPitch + 8 * j + 2 * (at.lane % 4)) =
          pack_e4m3(h[4 * j + 2 * i] * inverse, h[4 * j + 2 * i + 1] * inverse);
  }
  __syncwarp();
  const int chunk = at.lane % 8, column = s.weight_tile * 128 + chunk * 16;
#pragma unroll
  for (int r = at.lane / 8; r < 16; r += 4)
    if (warp_row + r < s.rows && column < C::kInter)
      *reinterpret_cast<uint4*>(args.h_rows + static_cast<i64>(s.row + warp_row + r) * C::kInter + column) =
          *reinterpret_cast<const uint4*>(staging + r * C::kQuantPitch + chunk * 16);
  __syncwarp();
}

// Eight elements of h on their way to codes: from memory, their largest magnitude, and to memory.
template <class C>
MOE_DEVICE uint4 load_wide(const LayerArgs& args, int row, int n) {
  if (n >= C::kInter) return make_uint4(0, 0, 0, 0);
  return __ldcg(reinterpret_cast<const uint4*>(args.h_wide + static_cast<i64>(row) * C::kInter + n));
}
template <class C>
MOE_DEVICE float wide_amax(const uint4& v) {
  const u32 w[4] = {v.x, v.y, v.z, v.w};
  float amax = 0.0f;
#pragma unroll
  for (int e = 0; e < 4; ++e) amax = fmaxf(amax, fmaxf(row_magnitude<C>(C::H::low(w[e])), row_magnitude<C>(C::H::high(w[e]))));
  return amax;
}
MOE_DEVICE float warp_maximum(float v) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
  return v;
}
template <class C>
MOE_DEVICE void store_codes(u8* to, int n, const uint4& v, float scale, float reciprocal) {
  const u32 w[4] = {v.x, v.y, v.z, v.w};
  u16 q[4];
#pragma unroll
  for (int e = 0; e < 4; ++e)
    q[e] = pack_codes<C>(divide_by_scale(C::H::low(w[e]), scale, reciprocal), divide_by_scale(C::H::high(w[e]), scale, reciprocal));
  if (n < C::kInter)
    *reinterpret_cast<uint2*>(to) = make_uint2(q[0] | (static_cast<u32>(q[1]) << 16), q[2] | (static_cast<u32>(q[3]) << 16));
}

// Per-token codes, once all N columns of the rows are in memory: a warp takes rows
// first, first + stride, ..., as registers allow: two at a time, so that one's loads hide the other's, or
// one, or none, which is read twice. `tensor_scale`: of all rows, where the scheme has such. codes_of(row, n):
// where those of columns n to n + 7 go; scale_to(row): and the row's scale.
template <class C, class CodesOf, class ScaleTo>
MOE_DEVICE void quantise_wide_rows(const LayerArgs& args, int first, int end, int stride, int lane, float tensor_scale, CodesOf codes_of,
                                   ScaleTo scale_to) {
  constexpr int kVectors = ceil_div(C::kInter, 256), kRows = kVectors <= 12 ? 2 : 1, kHeld = kVectors <= 16 ? kVectors : 1;
  auto scale_of = [&](float amax) { return C::kTensorGiven || C::kTensorAmax ? tensor_scale : row_scale<C>(amax); };
  for (int row = first; row < end; row += kRows * stride) {
    if constexpr (kHeld != kVectors) {
      float amax = 0.0f;
#pragma unroll 4
      for (int n = lane * 8; n < C::kInter; n += 256) amax = fmaxf(amax, wide_amax<C>(load_wide<C>(args, row, n)));
      const float scale = scale_of(warp_maximum(amax)), reciprocal = __frcp_rn(scale);
      if (lane == 0) *scale_to(row) = scale;
#pragma unroll 4
      for (int n = lane * 8; n < C::kInter; n += 256) store_codes<C>(codes_of(row, n), n, load_wide<C>(args, row, n), scale, reciprocal);
    } else {
      uint4 v[kRows][kHeld];
#pragma unroll
      for (int two = 0; two < kRows; ++two) {
        const int r = min(row + two * stride, end - 1);
#pragma unroll
        for (int i = 0; i < kHeld; ++i) v[two][i] = load_wide<C>(args, r, (i * 32 + lane) * 8);
      }
#pragma unroll
      for (int two = 0; two < kRows; ++two) {
        const int r = row + two * stride;
        if (r >= end) break;
        float amax = 0.0f;
#pragma unroll
        for (int i = 0; i < kHeld; ++i) amax = fmaxf(amax, wide_amax<C>(v[two][i]));
        const float scale = scale_of(warp_maximum(amax)), reciprocal = __frcp_rn(scale);
        if (lane == 0) *scale_to(r) = scale;
#pragma unroll
        for (int i = 0; i < kHeld; ++i) store_codes<C>(codes_of(r, (i * 32 + lane) * 8), (i * 32 + lane) * 8, v[two][i], scale, reciprocal);
      }
    }
  }
}

template <class C>
MOE_DEVICE void quantise_wide_rows(const LayerArgs& args, int first, int end, int stride, int lane, float tensor_scale) {
  quantise_wide_rows<C>(
      args, first, end, stride, lane, tensor_scale, [&](int row, int n) { return args.h_rows + static_cast<i64>(row) * C::kInter + n; },
      [&](int row) { return args.h_scale + row; });
}

// All blocks arrive and wait; all math threads of each.
MOE_DEVICE void sync_grid(u32* counter, const Place& at) {
  sync_math();
  if (at.thread == 0) {
    add_release(counter, 1);
    while (load_acquire(counter) < gridDim.x) {
    }
  }
  sync_math();
}

// One scale for all rows of h: after the last gate/up tile of the grid, every block takes its share of
// the rows twice, for their largest magnitude and to quantise them.
template <class C>
MOE_DEVICE void quantise_tensor(const LayerArgs& args, int rows, const Place& at) {
  u32* counters = args.counters + args.tensor;
  const int first = blockIdx.x * 8 + at.thread / 32, stride = gridDim.x * 8;
  sync_grid(counters + 1, at);
  float amax = 0.0f;
  for (int row = first; row < rows; row += stride)
    for (int n = at.lane * 8; n < C::kInter; n += 256) amax = fmaxf(amax, wide_amax<C>(load_wide<C>(args, row, n)));
  amax = warp_maximum(amax);
  if (at.lane == 0 && amax > 0.0f) atomicMax(counters, __float_as_uint(amax));
  sync_grid(counters + 2, at);
  quantise_wide_rows<C>(args, first, rows, stride, at.lane, block_scale(__uint_as_float(__ldcg(counters))));
  sync_math();
  if (at.thread == 0) add_release(counters + 3, 1);
}

template <class C>
MOE_DEVICE void finish_gate_up_rows(const LayerArgs& args, const Segment& s, RowTile& gate, const RowTile& up, u8* staging,
                                    const Place& at, int* group_flag) {
  activate<C, 1>(args, gate, up);
  const int warp_row = at.group * 64 + at.warp * 16;
  if constexpr (C::kBlockScales) {
    quantise_gate_up_rows<C>(args, s, gate, staging, at);
  } else {
    const int column = s.weight_tile * 128;
    u16* dst = (C::kChannelScales ? args.h_wide : reinterpret_cast<u16*>(args.h_rows)) +
               static_cast<i64>(s.row + warp_row) * C::kInter + column;
    store_rows_half<C>(gate, staging, at, dst, C::kInter, s.rows - warp_row, C::kInter - column, [](int r) { return static_cast<i64>(r); });
  }
  if constexpr (C::kTensorAmax) return;  // quantise_tensor does the rest
  if constexpr (C::kChannelScales) {
    sync_group(at.group);
    if (at.thread % 128 == 0) {
      *group_flag = fetch_add_acq_rel(&args.counters[args.tile_capacity + 2 * s.token_tile + at.group], 1) == C::kWeightTiles1 - 1;
    }
    sync_group(at.group);
    if (!*group_flag) return;
    const int first = s.row + at.group * 64;
    quantise_wide_rows<C>(args, first + at.warp, min(first + 64, s.row + s.rows), 4, at.lane,
                          C::kTensorGiven ? args.tensor_scale[1] : 0.0f);
  }
  publish_group(&args.counters[s.token_tile], at);
}

template <class C>
MOE_DEVICE void finish_down_rows(const LayerArgs& args, const Segment& s, const RowTile& v, int box, u8* staging, const Place& at,
                                 const RowPrefetch& p) {
  const int warp_row = at.group * 64 + at.warp * 16, column = s.weight_tile * 256 + box * 128;
  if constexpr (C::kDirect) {
    store_rows_half<C>(v, staging, at, args.y + column, C::kHidden, s.rows - warp_row, C::kHidden - column, [&](int r) {
      const int t0 = __shfl_sync(0xffffffffu, p.token[0], (r % 8) * 4), t1 = __shfl_sync(0xffffffffu, p.token[1], (r % 8) * 4);
      return static_cast<i64>(r < 8 ? t0 : t1);
    });
  } else {
    store_rows_half<C>(v, staging, at, args.pair_out + static_cast<i64>(s.row + warp_row) * C::kHidden + column, C::kHidden,
                       s.rows - warp_row, C::kHidden - column, [](int r) { return static_cast<i64>(r); });
  }
}

// Biases of 128 weight rows, of which `limit` are in the matrix, then the factor of each row.
MOE_DEVICE void add_bias_rows(RowTile& v, const float* bias, int limit, const float (&weight)[2], int lane) {
#pragma unroll
  for (int j = 0; j < 16; ++j) {
    const int column = 8 * j + 2 * (lane % 4);
    float2 b = make_float2(0.0f, 0.0f);
    if (column < limit) b = *reinterpret_cast<const float2*>(bias + column);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      v[4 * j + 2 * i] = (v[4 * j + 2 * i] + b.x) * weight[i];
      v[4 * j + 2 * i + 1] = (v[4 * j + 2 * i + 1] + b.y) * weight[i];
    }
  }
}

template <class C>
MOE_DEVICE void finish_rows(const LayerArgs& args, const Segment& s, RowTile& sum0, RowTile& sum1, u8* epilogue, const Place& at,
                            RowPrefetch& p, int* group_flag) {
  u8* staging = epilogue + (at.group * 4 + at.warp) * 16 * C::kQuantPitch;
  float* channels = reinterpret_cast<float*>(epilogue + C::kStagingBytes);
  float weight[2] = {1.0f, 1.0f};  // with biases the router weight comes after them
  if (C::kBias && s.phase == 1) {
#pragma unroll
    for (int i = 0; i < 2; ++i) weight[i] = p.factor[i], p.factor[i] = 1.0f;
  }
  if constexpr (C::kChannelScales) {
    sync_math();
    channels[at.thread] = p.channel;
    if (s.phase == 1) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int in_tile = at.group * 64 + at.warp * 16 + at.lane / 4 + 8 * i;
        if (in_tile < s.rows) p.factor[i] *= __ldcg(&args.h_scale[s.row + in_tile]);
      }
    }
    sync_math();
  }
  if (C::kChannelScales || (!C::kBias && (s.phase == 0) == C::kWeightOnInput)) {
    scale_rows<C>(sum0, p.factor, channels, at.lane);
    scale_rows<C>(sum1, p.factor, channels + 128, at.lane);
  }
  if constexpr (C::kBias) {
    const int first = s.phase == 0 ? s.weight_tile * 128 : s.weight_tile * 256, end = s.phase == 0 ? C::kInter : C::kHidden;
    const float* bias = s.phase == 0 ? args.w13_bias + static_cast<i64>(s.expert) * 2 * C::kInter + first
                                     : args.w2_bias + static_cast<i64>(s.expert) * C::kHidden + first;
    const int next = s.phase == 0 ? C::kInter : 128;
    add_bias_rows(sum0, bias, end - first, weight, at.lane);
    add_bias_rows(sum1, bias + next, s.phase == 0 ? end - first : end - first - 128, weight, at.lane);
  }
  if (s.phase == 0) {
    finish_gate_up_rows<C>(args, s, sum0, sum1, staging, at, group_flag + at.group);
  } else {
    finish_down_rows<C>(args, s, sum0, 0, staging, at, p);
    finish_down_rows<C>(args, s, sum1, 1, staging, at, p);
  }
}

}  // namespace moe
