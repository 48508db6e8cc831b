// Included once per compilation, by device/matrix.h: the matrix instructions of every architecture,
// by name; emulator/matrix.cc knows what they do.
namespace moe {

#define MOE_MATRIX(Name, Operand, Sum, count)                                     \
  struct Name {                                                                   \
    using OperandType = Operand;                                                  \
    using SumType = Sum;                                                          \
    static void run(const Operand& a, const Operand& b, Sums<Sum, count>& sums) { \
      gpu::matrix(gpu::Instruction::Name, &a, &b, sums.v);                        \
    }                                                                             \
  };
MOE_MATRIX(Mfma16x16x32Fp8, u64, float, 4)
MOE_MATRIX(Mfma32x32x16Fp8, u64, float, 16)
MOE_MATRIX(Mfma16x16x32I8, u64, int, 4)
MOE_MATRIX(Mfma32x32x16I8, u64, int, 16)
MOE_MATRIX(Mfma16x16x16Bf16, u64, float, 4)
MOE_MATRIX(Mfma32x32x8Bf16, u64, float, 16)
MOE_MATRIX(Mfma16x16x16F16, u64, float, 4)
MOE_MATRIX(Mfma32x32x8F16, u64, float, 16)
MOE_MATRIX(Mfma16x16x32Bf16, Chunk, float, 4)
MOE_MATRIX(Mfma32x32x16Bf16, Chunk, float, 16)
MOE_MATRIX(Mfma16x16x32F16, Chunk, float, 4)
MOE_MATRIX(Mfma32x32x16F16, Chunk, float, 16)
MOE_MATRIX(Wmma16x16x16Fp8, u64, float, 8)
MOE_MATRIX(Wmma16x16x16I8, u64, int, 8)
MOE_MATRIX(Wmma16x16x16Bf16, Chunk, float, 8)
MOE_MATRIX(Wmma16x16x16F16, Chunk, float, 8)
#undef MOE_MATRIX

}  // namespace moe
