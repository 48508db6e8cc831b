#include <immintrin.h>

#include "kernels/cpu/isa/kernel_table.h"

namespace moegauge::cpu {
namespace {

#define MOEGAUGE_LANES 16
#define MOEGAUGE_OPAQUE(v) asm volatile("" : "+v"(v))
#include "kernels/cpu/isa/row_blocks.h"
#include "kernels/cpu/isa/vec.h"

constexpr bool kBf16Dot = false;
template <DotUnit>
MOEGAUGE_INLINE F dot(F x, F w, F acc) {
  return multiply_add(x, w, acc);
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

}  // namespace

const KernelTable& avx512_kernels() {
  static constexpr KernelTable table = make_table("avx512");
  return table;
}

}  // namespace moegauge::cpu
