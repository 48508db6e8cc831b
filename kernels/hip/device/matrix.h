// The matrix instructions, and which of them an architecture multiplies a format with.
//
// All have the same shape here: lane L holds kBytes of row (A) or column (B) L % kDim, and a share
// of the product D. Lanes with the same L % kDim divide the instruction's K among themselves. How
// they do is no matter, because A and B are given alike: a step's chunks are dealt to them in turn.
// What D's rows are is: row_of. Layouts are checked in emulator/matrix_test.cc.
#pragma once
#include "kernels/hip/device/config.h"
#include "kernels/hip/device/gpu.h"

namespace moe {

struct alignas(16) Chunk {
  u64 half[2];
};

template <class T, int kCount>
struct Sums {
  T v[kCount];
};

// Complete where the architecture has them.
struct Mfma16x16x32Fp8;
struct Mfma32x32x16Fp8;
struct Mfma16x16x32I8;
struct Mfma32x32x16I8;
struct Mfma16x16x16Bf16;
struct Mfma32x32x8Bf16;
struct Mfma16x16x16F16;
struct Mfma32x32x8F16;
struct Mfma16x16x32Bf16;
struct Mfma32x32x16Bf16;
struct Mfma16x16x32F16;
struct Mfma32x32x16F16;
struct Wmma16x16x16Fp8;
struct Wmma16x16x16I8;
struct Wmma16x16x16Bf16;
struct Wmma16x16x16F16;

// The instruction for a format, by what the architecture can do.
template <bool kFirst, class A, class B>
struct If {
  using Type = A;
};
template <class A, class B>
struct If<false, A, B> {
  using Type = B;
};
template <bool kFirst, class A, class B>
using Either = typename If<kFirst, A, B>::Type;

template <Format kFormat, class Bf16, class F16, class I8, class Fp8>
using ForFormat =
    Either<kFormat == Format::bf16, Bf16,
           Either<kFormat == Format::fp16, F16, Either<kFormat == Format::int8_channels, I8, Fp8>>>;

template <class Arch, Format kFormat, int kDim>
using InstructionOf =
    Either<!Arch::kMfma,
           ForFormat<kFormat, Wmma16x16x16Bf16, Wmma16x16x16F16, Wmma16x16x16I8, Wmma16x16x16Fp8>,
           Either<kDim == 32,
                  ForFormat<kFormat, Either<Arch::kLongHalf, Mfma32x32x16Bf16, Mfma32x32x8Bf16>,
                            Either<Arch::kLongHalf, Mfma32x32x16F16, Mfma32x32x8F16>,
                            Mfma32x32x16I8, Mfma32x32x16Fp8>,
                  ForFormat<kFormat, Either<Arch::kLongHalf, Mfma16x16x32Bf16, Mfma16x16x16Bf16>,
                            Either<Arch::kLongHalf, Mfma16x16x32F16, Mfma16x16x16F16>,
                            Mfma16x16x32I8, Mfma16x16x32Fp8>>>;

}  // namespace moe

#if defined(__AMDGCN__)
#include "kernels/hip/device/matrix_amdgcn.h"
#else
#include "kernels/hip/emulator/matrix_emulated.h"
#endif

namespace moe {

template <class C>
using SumType = typename InstructionOf<typename C::Arch, C::kFormat, C::kDim>::SumType;
// A lane's share of one product of kDim rows (weights) by kDim columns (tokens).
template <class C>
using Product = Sums<SumType<C>, C::kSums>;

// Adds the products over the 16 bytes that a and b are.
template <class C>
MOE_DEVICE void multiply(const Chunk& a, const Chunk& b, Product<C>& sums) {
  using Instruction = InstructionOf<typename C::Arch, C::kFormat, C::kDim>;
  if constexpr (sizeof(typename Instruction::OperandType) == 16) {
    Instruction::run(a, b, sums);
  } else {
    Instruction::run(a.half[0], b.half[0], sums);
    Instruction::run(a.half[1], b.half[1], sums);
  }
}

// The row of D that sum i of a lane is; its column is lane % kDim. Runs of four sums are rows that
// follow one another.
template <class C>
MOE_DEVICE constexpr int row_of(int i, int lane) {
  if (C::kDim == 32) return 8 * (i / 4) + 4 * (lane / 32) + i % 4;
  return C::kSums * (lane / 16) + i;
}

}  // namespace moe
