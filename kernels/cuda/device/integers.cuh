// The main loop for weights of few bits: codes go from the ring through registers, where they become
// exact small integers (E2M1: exact floats) in the layer's 16-bit type, straight into wgmma as its A operand. A group's products are summed by
// themselves and its scales multiply that fp32 sum, so a weight is never rounded.
#pragma once
#include "kernels/cuda/device/multiply.cuh"

namespace moe {

MOE_DEVICE u32 shared_word(u32 address) {
  u32 v;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(v) : "r"(address));
  return v;
}
MOE_DEVICE u32 shared_half(u32 address) {
  u16 v;
  asm volatile("ld.shared.b16 %0, [%1];" : "=h"(v) : "r"(address));
  return v;
}
template <bool kFp16>
MOE_DEVICE u32 subtract_pair(u32 a, u32 b) {
  u32 d;
  if constexpr (kFp16) asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  else asm("sub.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
template <bool kFp16>
MOE_DEVICE u32 multiply_pair(u32 a, u32 b) {
  u32 d;
  if constexpr (kFp16) asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  else asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

// (a & mask) | bits as one instruction, which the compiler does not make of two constants.
MOE_DEVICE u32 masked_or(u32 a, u32 mask, u32 bits) {
  u32 d;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(d) : "r"(a), "r"(mask), "r"(bits));
  return d;
}

// What is taken from a code to give its integer, for a thread's two rows: 128 (fp16: 1024) + zero point
// twice in 16 bits (four bits), 2^23 + zero point in fp32 (eight bits).
struct IntZero {
  u32 row[2];
};
template <class C>
MOE_DEVICE IntZero int_zero(u32 zero_points) {
  if constexpr (C::kIntBits == 4) {
    constexpr u32 one = C::kFp16 ? 0x64006400u : 0x43004300u;
    if constexpr (!C::kZeroPoints) return {{one | 0x00080008u, one | 0x00080008u}};
    return {{(zero_points & 0xffu) * 0x10001u | one, (zero_points >> 8) * 0x10001u | one}};
  } else {
    if constexpr (!C::kZeroPoints) return {{0x4b000080u, 0x4b000080u}};
    return {{(zero_points & 0xffu) | 0x4b000000u, (zero_points >> 8) | 0x4b000000u}};
  }
}

// Four-bit code c in a bf16 (fp16) whose exponent makes the last mantissa bit 1 is 128 (1024) + c.
template <class C>
MOE_DEVICE void integers_of_word(u32 (&a)[4], u32 word, const IntZero& zero) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
    a[i] = subtract_pair<C::kFp16>(masked_or(word >> (4 * i), 0x000f000fu, C::kFp16 ? 0x64006400u : 0x43004300u), zero.row[i % 2]);
}
// E2M1 is sign, two bits of exponent and one of mantissa. Its last three bits as the last exponent bits
// and first mantissa bit of a wider format are the same number, subnormal or not, but for the
// exponents' biases: times 2^126 (fp16: 2^14).
template <class C>
MOE_DEVICE void floats_of_word(u32 (&a)[4], u32 word) {
  constexpr int kPlace = C::kFp16 ? 9 : 6;
  constexpr u32 kMask = 0x00070007u << kPlace, kBias = C::kFp16 ? 0x74007400u : 0x7e807e80u;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const u32 magnitude = 4 * i < kPlace ? word << (kPlace - 4 * i & 31) : word >> (4 * i - kPlace & 31);
    a[i] = multiply_pair<C::kFp16>((magnitude & kMask) | (word << (12 - 4 * i) & 0x80008000u), kBias);
  }
}
// Eight-bit code c as the last byte of an fp32 with the exponent of 2^23 is 2^23 + c. The integers
// have at most eight significant bits, which bf16 holds.
template <class C>
MOE_DEVICE void integers_of_words(u32 (&a)[4], u32 low, u32 high, const IntZero& zero) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const u32 word = i < 2 ? low : high, first = i % 2 * 2;
    const float offset = __uint_as_float(zero.row[i % 2]);
    const float v0 = __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7650u | first)) - offset;
    const float v1 = __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7650u | (first + 1))) - offset;
    a[i] = C::H::pack(v0, v1);
  }
}

// sum += part times the scales of a thread's two rows.
template <class C, int W>
MOE_DEVICE void add_scaled(Tile<C>& sum, const float (&part)[W / 2], u32 scales) {
  using Scale = Half<C::kFp16 && !C::kE2m1>;  // E8M0 fits bf16 only
  const float s0 = Scale::low(scales), s1 = Scale::high(scales);
#pragma unroll
  for (int j = 0; j < W / 8; ++j) {
    sum[4 * j] = fmaf(part[4 * j], s0, sum[4 * j]);
    sum[4 * j + 1] = fmaf(part[4 * j + 1], s0, sum[4 * j + 1]);
    sum[4 * j + 2] = fmaf(part[4 * j + 2], s1, sum[4 * j + 2]);
    sum[4 * j + 3] = fmaf(part[4 * j + 3], s1, sum[4 * j + 3]);
  }
}

// W: the columns that are multiplied, all of a tile's or fewer.
// A stage's work is cut into pieces of up to 64 columns. While the tensor cores work on one, the
// next one's codes are turned into integers. Up to 64 tokens a piece has both boxes, whose products
// alternate, so that no instruction waits for the sum of the one before; beyond that registers hold
// the sums of one group and box only, and pieces of the boxes' groups take turns.
template <class C, int W>
struct IntPieces {
  static constexpr int kBoxes = W <= 64 ? 2 : 1;  // of a piece
  static constexpr bool kNarrow = C::kGroup < 128 || (kBoxes == 2 && (W > 48 || C::kIntBits == 8));
  static constexpr int kInstructions = kNarrow ? 2 : 4;  // of 16 columns, in a piece and box
  static constexpr int kPerGroup = C::kGroup / 16 / kInstructions, kTurns = 2 / kBoxes;
  static constexpr int kCount = kIntStep / 16 / kInstructions * kTurns;  // in a stage
  static constexpr int kLines = C::kIntBits / 4;                         // of codes, for 64 columns
  static constexpr int kScaleOffset = int_code_bytes(C::kIntBits);
  static_assert(kCount >= 2, "while a piece's registers are read, the next one's are written");
  static constexpr int kZeroOffset = kScaleOffset + kIntStep / C::kGroup * 2 * kIntRows;

  MOE_DEVICE static constexpr int box(int piece) { return piece / kPerGroup % kTurns; }  // the first
  MOE_DEVICE static constexpr int group(int piece) { return piece / kPerGroup / kTurns; }
  MOE_DEVICE static constexpr bool first(int piece) { return piece % kPerGroup == 0; }
  MOE_DEVICE static constexpr int instruction(int piece) {  // of the stage's eight
    return (group(piece) * kPerGroup + piece % kPerGroup) * kInstructions;
  }
};

// A thread's codes of one piece, by box.
template <class C, int W>
struct IntCodes {
  uint4 line[IntPieces<C, W>::kBoxes][IntPieces<C, W>::kLines];
};
template <class C, int W, int piece>
MOE_DEVICE void load_codes(IntCodes<C, W>& codes, u32 chunk, const Place& at) {
  using P = IntPieces<C, W>;
  constexpr int i = P::instruction(piece);
  // The second half of a line whose first half was the piece before.
  if (P::kBoxes == 2 && P::kLines == 1 && i % 4 != 0) return;
#pragma unroll
  for (int b = 0; b < P::kBoxes; ++b) {
    const u32 block = chunk + ((P::box(piece) + b) * 8 + at.group * 4 + at.warp) * (2 * P::kLines * 512) + at.lane * 16;
#pragma unroll
    for (int line = 0; line < P::kLines; ++line) {
      if (P::kLines == 2 && P::kInstructions == 2 && line != i % 4 / 2) continue;
      codes.line[b][line] = shared_line(block + i / 4 * (P::kLines * 512) + line * 512);
    }
  }
}

// The A operands of one piece and box.
template <class C, int W>
MOE_DEVICE void convert_codes(u32 (&a)[IntPieces<C, W>::kInstructions][4], const uint4 (&lines)[IntPieces<C, W>::kLines],
                              const IntZero& zero, int first) {
#pragma unroll
  for (int k = 0; k < IntPieces<C, W>::kInstructions; ++k) {
    const int i = first + k;
    if constexpr (C::kIntBits == 4) {
      const uint4& line = lines[0];
      const u32 word = i == 0 ? line.x : i == 1 ? line.y : i == 2 ? line.z : line.w;
      if constexpr (C::kE2m1) floats_of_word<C>(a[k], word);
      else integers_of_word<C>(a[k], word, zero);
    } else {
      const uint4& line = lines[i / 2];
      integers_of_words<C>(a[k], i % 2 == 0 ? line.x : line.z, i % 2 == 0 ? line.y : line.w, zero);
    }
  }
}

// The group summed last: of both boxes, or of kBox.
template <class C, int W, int kBox>
MOE_DEVICE void add_finished(Tile<C>& sum0, Tile<C>& sum1, float (&part)[IntPieces<C, W>::kBoxes][W / 2], const u32 (&scales)[2]) {
  wgmma_wait<0>();
#pragma unroll
  for (int b = 0; b < IntPieces<C, W>::kBoxes; ++b) wgmma_pin(part[b]);
  if constexpr (IntPieces<C, W>::kBoxes == 2) {
    add_scaled<C, W>(sum0, part[0], scales[0]);
    add_scaled<C, W>(sum1, part[1], scales[1]);
  } else if constexpr (kBox == 0) {
    add_scaled<C, W>(sum0, part[0], scales[0]);
  } else {
    add_scaled<C, W>(sum1, part[0], scales[1]);
  }
}

// What goes from one piece to the next.
template <class C, int W>
struct IntProgress {
  float part[IntPieces<C, W>::kBoxes][W / 2];
  u32 scales[2] = {0, 0};  // of the group being summed, for each box; none yet
  IntZero zero[IntPieces<C, W>::kBoxes];
  IntCodes<C, W> next;
  u32 previous = 0;  // the stage before this one, by its barrier
};

// A stage from `piece` on. A recursion, since a loop over pieces must never stay one: each has A
// registers of its own, which are written while those of the one before are being read.
template <class C, int W, int piece>
MOE_DEVICE void multiply_pieces(const Ring<C>& ring, IntProgress<C, W>& p, Tile<C>& sum0, Tile<C>& sum1, u32 place, const Place& at) {
  const u32 chunk = ring.weights(0), tokens = ring.tokens();
  using P = IntPieces<C, W>;
  constexpr int start = P::instruction(piece), box = P::box(piece);
  constexpr bool first = P::first(piece);
  const IntCodes<C, W> codes = p.next;
  if constexpr (piece + 1 < P::kCount) load_codes<C, W, piece + 1>(p.next, chunk, at);
  u32 a[P::kBoxes][P::kInstructions][4];
#pragma unroll
  for (int b = 0; b < P::kBoxes; ++b) {
    if (C::kZeroPoints && first)
      p.zero[b] = int_zero<C>(shared_half(chunk + P::kZeroOffset + P::group(piece) * kIntRows + place * 4 + (box + b) * 2));
    convert_codes<C, W>(a[b], codes.line[b], p.zero[b], start % 4);
  }
  if constexpr (first) add_finished<C, W, 1 - box>(sum0, sum1, p.part, p.scales);
  if (piece == 0) {  // nothing reads the stage before this one any more
    if (p.previous != 0 && Ring<C>::releases(at.lane)) Ring<C>::release(p.previous);
    p.previous = ring.empty();
  }
#pragma unroll
  for (int b = 0; b < P::kBoxes; ++b) wgmma_pin(p.part[b]);
  wgmma_begin();
#pragma unroll
  for (int k = 0; k < P::kInstructions; ++k) {
    const int i = start + k;
    const u32 token = wgmma_descriptor(tokens + i / 4 * (C::kTokenTile * 128)) + 2 * (i % 4);
#pragma unroll
    for (int b = 0; b < P::kBoxes; ++b) {
      if constexpr (C::kFp16) Wgmma<W>::f16_registers(p.part[b], a[b][k], token, !(first && k == 0));
      else Wgmma<W>::bf16_registers(p.part[b], a[b][k], token, !(first && k == 0));
    }
  }
  wgmma_commit();
  if constexpr (!first) {
    wgmma_wait<1>();
  } else {
#pragma unroll
    for (int b = 0; b < P::kBoxes; ++b)
      p.scales[box + b] = shared_word(chunk + P::kScaleOffset + P::group(piece) * (2 * kIntRows) + place * 8 + (box + b) * 4);
  }
  if constexpr (piece + 1 < P::kCount) multiply_pieces<C, W, piece + 1>(ring, p, sum0, sum1, place, at);
}

template <class C, int W>
MOE_DEVICE void multiply_integers(Ring<C>& ring, int steps, Tile<C>& sum0, Tile<C>& sum1, const Place& at) {
  IntProgress<C, W> p;
#pragma unroll
  for (int i = 0; i < C::kTokenTile / 2; ++i) sum0[i] = sum1[i] = 0.0f;
#pragma unroll
  for (int b = 0; b < IntPieces<C, W>::kBoxes; ++b) {
    p.zero[b] = int_zero<C>(0);
#pragma unroll
    for (int i = 0; i < W / 2; ++i) p.part[b][i] = 0.0f;
  }
  const u32 place = (at.group * 4 + at.warp) * 8 + at.lane / 4;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    barrier_wait(ring.full(), ring.parity);
    load_codes<C, W, 0>(p.next, ring.weights(0), at);
    multiply_pieces<C, W, 0>(ring, p, sum0, sum1, place, at);
    ring.advance();
  }
  add_finished<C, W, 1>(sum0, sum1, p.part, p.scales);
  if (Ring<C>::releases(at.lane)) Ring<C>::release(p.previous);
}

// What a tile's products cost goes by the columns of an instruction, and its rows are often fewer than it has room for.
MOE_BOTH constexpr int fewer_columns(int tile) {
  return tile == 16 ? 8 : tile == 24 ? 16 : tile == 48 ? 32 : tile == 64 ? 48 : tile == 80 ? 64 : tile == 96 ? 80 : tile;
}
template <class C>
MOE_DEVICE void multiply_integers(Ring<C>& ring, int steps, int columns, Tile<C>& sum0, Tile<C>& sum1, const Place& at) {
  constexpr int kFewer = fewer_columns(C::kTokenTile);
  if (kFewer < C::kTokenTile && columns <= kFewer) multiply_integers<C, kFewer>(ring, steps, sum0, sum1, at);
  else multiply_integers<C, C::kTokenTile>(ring, steps, sum0, sum1, at);
}

}  // namespace moe
