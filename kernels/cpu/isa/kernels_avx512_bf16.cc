#include <immintrin.h>

#include "kernels/cpu/isa/kernel_table.h"

namespace moegauge::cpu {
namespace {

#define MOEGAUGE_LANES 16
#define MOEGAUGE_OPAQUE(v) asm volatile("" : "+v"(v))
#include "kernels/cpu/isa/row_blocks.h"
#include "kernels/cpu/isa/vec.h"

constexpr bool kBf16Dot = true;
template <DotUnit kUnit>
MOEGAUGE_INLINE F dot(F x, F w, F acc) {
  if constexpr (kUnit == DotUnit::bf16_pair) {
    return _mm512_dpbf16_ps(acc, (__m512bh)x, (__m512bh)w);
  } else {
    return multiply_add(x, w, acc);
  }
}

// Each needs what is before it.
// clang-format off
#include "kernels/cpu/isa/decode_generic.h"
#include "kernels/cpu/isa/decode_avx512.h"
#include "kernels/cpu/isa/decode_panel.h"
#include "kernels/cpu/isa/gemm_body.h"
#include "kernels/cpu/isa/elementwise_body.h"
#include "kernels/cpu/isa/table_body.h"
// clang-format on

void gemm_own_or_below(WeightCodec codec, const GemmArgs& args) {
  is_own(codec, args.unit) ? gemm(codec, args) : avx512_kernels().gemm(codec, args);
}
void decode_loop_own_or_below(WeightCodec codec, DotUnit unit, const std::byte* w,
                              std::int64_t bytes) {
  is_own(codec, unit) ? decode_loop(codec, unit, w, bytes)
                      : avx512_kernels().decode_loop(codec, unit, w, bytes);
}

}  // namespace

const KernelTable& avx512_bf16_kernels() {
  static constexpr KernelTable table = [] {
    KernelTable own = make_table("avx512_bf16");
    own.gemm = gemm_own_or_below;
    own.decode_loop = decode_loop_own_or_below;
    return own;
  }();
  return table;
}

}  // namespace moegauge::cpu
