// Every kernel of a layer as device code, for the architecture that is compiled for: one code object
// serves every layer of every scheme.
#include "kernels/hip/device/combine.h"
#include "kernels/hip/device/gemm.h"
#include "kernels/hip/device/group_rows.h"
#include "kernels/hip/device/quantise_rows.h"

namespace moe {

using A = ThisArch;

#define MOE_SMALL(name, call) \
  extern "C" MOE_KERNEL(kPrepareThreads) void name(LayerArgs args) { call; }
#include "kernels/hip/device/small_kernels.inc"
#undef MOE_SMALL

#define MOE_PHASE(phase, suffix, format, tokens, columns, waves, dim, depth, on_input)                        \
  using Config_##phase##_##suffix = LayerConfig<A, Format::format, tokens, columns, waves, dim, depth, on_input>; \
  extern "C" MOE_KERNEL(Config_##phase##_##suffix::kThreads) void phase##_##suffix(LayerArgs args) {           \
    grouped_gemm<Config_##phase##_##suffix, Phase::phase>(args);                                               \
  }
#define MOE_NAMED(suffix, ...)                             \
  MOE_PHASE(gate_up, suffix, __VA_ARGS__, false)           \
  MOE_PHASE(gate_up, suffix##_on_input, __VA_ARGS__, true) \
  MOE_PHASE(down, suffix, __VA_ARGS__, false)
#define MOE_TILE(format, tokens, columns, waves, dim, depth)                                                         \
  MOE_NAMED(format##_t##tokens##_c##columns##_w##waves##_d##dim##_s##depth, format, tokens, columns, waves, dim, depth)
#if defined(__gfx1201__)
#define MOE_IF_mfma(...)
#define MOE_IF_wmma(...) MOE_TILE(__VA_ARGS__)
#else
#define MOE_IF_mfma(...) MOE_TILE(__VA_ARGS__)
#define MOE_IF_wmma(...)
#endif
#define MOE_GEMM(instructions, ...) MOE_IF_##instructions(__VA_ARGS__)
#include "kernels/hip/device/kernel_list.inc"

}  // namespace moe
