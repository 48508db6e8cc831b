#include "kernels/cpu/isa/kernel_table.h"

namespace moegauge::cpu {
namespace {

#define MOEGAUGE_LANES 4
#if defined(__x86_64__)
#define MOEGAUGE_OPAQUE(v) asm volatile("" : "+x"(v))
#elif defined(__aarch64__)
#define MOEGAUGE_OPAQUE(v) asm volatile("" : "+w"(v))
#else
#define MOEGAUGE_OPAQUE(v) asm volatile("" : "+m"(v))
#endif
#include "kernels/cpu/isa/row_blocks.h"
#include "kernels/cpu/isa/vec.h"

constexpr bool kBf16Dot = false;
template <DotUnit>
MOEGAUGE_INLINE F dot(F x, F w, F acc) {
  return multiply_add(x, w, acc);
}

#include "kernels/cpu/isa/decode_generic.h"
template <WeightCodec>
constexpr bool has_rare_codes = false;
constexpr WeightLayout fp8_layout(WeightCodec) { return {8, 4, kOrders.by_run4}; }
template <WeightCodec kCodec, DotUnit kUnit, bool>
MOEGAUGE_INLINE void decode_run(const std::byte* w, int column, int part,
                                F (&steps)[part_steps<kCodec, kUnit>]) {
  generic_run<kCodec, kUnit>(w, column, part, steps);
}
// A column vector is several registers here: no decoding on the way into the dots.
template <WeightCodec>
constexpr int fused_most = 0;
template <WeightCodec, DotUnit>
constexpr std::int64_t fused_limit = 0;

// Each needs what is before it.
// clang-format off
#include "kernels/cpu/isa/decode_panel.h"
#include "kernels/cpu/isa/gemm_body.h"
#include "kernels/cpu/isa/elementwise_body.h"
#include "kernels/cpu/isa/table_body.h"
// clang-format on

}  // namespace

const KernelTable& portable_kernels() {
  static constexpr KernelTable table = make_table("portable");
  return table;
}

}  // namespace moegauge::cpu
