#include "kernels/cpu/isa/kernel_table.h"

namespace moegauge::cpu {
namespace {

#define MOEGAUGE_LANES 4
#define MOEGAUGE_OPAQUE(v) asm volatile("" : "+g"(v))
#include "kernels/cpu/isa/row_blocks.h"
#include "kernels/cpu/isa/vec.h"

constexpr bool kBf16Dot = false;
template <DotUnit>
MOEGAUGE_INLINE F dot(F x, F w, F acc) {
  return multiply_add(x, w, acc);
}

#include "kernels/cpu/isa/decode_generic.h"
constexpr const std::uint8_t* kE4m3Order = kOrders.by_run4;
template <WeightCodec>
constexpr int fused_most = 0;  // a column vector is several registers here
template <WeightCodec>
constexpr bool transcoded = false;
#include "kernels/cpu/isa/kernel_body.h"

}  // namespace

const KernelTable& portable_kernels() {
  static constexpr KernelTable table = make_table("portable");
  return table;
}

}  // namespace moegauge::cpu
