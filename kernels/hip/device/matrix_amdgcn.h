// Included once per compilation, by matrix.h: the matrix instructions that the architecture has.
// Each is run(a, b, sums); a and b are u64 (8 bytes a lane) or Chunk (16).
namespace moe {

typedef float Float4 __attribute__((ext_vector_type(4)));
typedef float Float8 __attribute__((ext_vector_type(8)));
typedef float Float16 __attribute__((ext_vector_type(16)));
typedef int Int2 __attribute__((ext_vector_type(2)));
typedef int Int4 __attribute__((ext_vector_type(4)));
typedef int Int8 __attribute__((ext_vector_type(8)));
typedef int Int16 __attribute__((ext_vector_type(16)));
typedef short Short4 __attribute__((ext_vector_type(4)));
typedef short Short8 __attribute__((ext_vector_type(8)));
typedef _Float16 Half4 __attribute__((ext_vector_type(4)));
typedef _Float16 Half8 __attribute__((ext_vector_type(8)));
typedef __bf16 Bf8 __attribute__((ext_vector_type(8)));

#define MOE_MATRIX(Name, Operand, Sum, count, As, AsSum, expression)                   \
  struct Name {                                                                        \
    using OperandType = Operand;                                                       \
    using SumType = Sum;                                                               \
    static MOE_DEVICE void run(const Operand& a_bits, const Operand& b_bits,           \
                               Sums<Sum, count>& sums) {                               \
      const As a = __builtin_bit_cast(As, a_bits), b = __builtin_bit_cast(As, b_bits); \
      const AsSum c = __builtin_bit_cast(AsSum, sums);                                 \
      sums = __builtin_bit_cast(Sums<Sum MOE_COMMA count>, (expression));              \
    }                                                                                  \
  };
#define MOE_COMMA ,
#if defined(__gfx942__) || defined(__gfx950__)
MOE_MATRIX(Mfma16x16x32Fp8, u64, float, 4, long, Float4,
           __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(a, b, c, 0, 0, 0))
MOE_MATRIX(Mfma32x32x16Fp8, u64, float, 16, long, Float16,
           __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(a, b, c, 0, 0, 0))
MOE_MATRIX(Mfma16x16x32I8, u64, int, 4, long, Int4,
           __builtin_amdgcn_mfma_i32_16x16x32_i8(a, b, c, 0, 0, 0))
MOE_MATRIX(Mfma32x32x16I8, u64, int, 16, long, Int16,
           __builtin_amdgcn_mfma_i32_32x32x16_i8(a, b, c, 0, 0, 0))
MOE_MATRIX(Mfma16x16x16Bf16, u64, float, 4, Short4, Float4,
           __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a, b, c, 0, 0, 0))
MOE_MATRIX(Mfma32x32x8Bf16, u64, float, 16, Short4, Float16,
           __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(a, b, c, 0, 0, 0))
MOE_MATRIX(Mfma16x16x16F16, u64, float, 4, Half4, Float4,
           __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, c, 0, 0, 0))
MOE_MATRIX(Mfma32x32x8F16, u64, float, 16, Half4, Float16,
           __builtin_amdgcn_mfma_f32_32x32x8f16(a, b, c, 0, 0, 0))
#endif
#if defined(__gfx950__)
MOE_MATRIX(Mfma16x16x32Bf16, Chunk, float, 4, Bf8, Float4,
           __builtin_amdgcn_mfma_f32_16x16x32_bf16(a, b, c, 0, 0, 0))
MOE_MATRIX(Mfma32x32x16Bf16, Chunk, float, 16, Bf8, Float16,
           __builtin_amdgcn_mfma_f32_32x32x16_bf16(a, b, c, 0, 0, 0))
MOE_MATRIX(Mfma16x16x32F16, Chunk, float, 4, Half8, Float4,
           __builtin_amdgcn_mfma_f32_16x16x32_f16(a, b, c, 0, 0, 0))
MOE_MATRIX(Mfma32x32x16F16, Chunk, float, 16, Half8, Float16,
           __builtin_amdgcn_mfma_f32_32x32x16_f16(a, b, c, 0, 0, 0))
#endif
#if defined(__gfx1201__)
MOE_MATRIX(Wmma16x16x16Fp8, u64, float, 8, Int2, Float8,
           __builtin_amdgcn_wmma_f32_16x16x16_fp8_fp8_w32_gfx12(a, b, c))
MOE_MATRIX(Wmma16x16x16I8, u64, int, 8, Int2, Int8,
           __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(true, a, true, b, c, false))
MOE_MATRIX(Wmma16x16x16Bf16, Chunk, float, 8, Short8, Float8,
           __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(a, b, c))
MOE_MATRIX(Wmma16x16x16F16, Chunk, float, 8, Half8, Float8,
           __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a, b, c))
#endif
#undef MOE_MATRIX
#undef MOE_COMMA

}  // namespace moe
