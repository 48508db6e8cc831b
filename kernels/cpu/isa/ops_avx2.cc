#include <immintrin.h>

#include "kernels/cpu/isa/op_table.h"

namespace moegauge::cpu {
namespace {

#define MOEGAUGE_LANES 8
#include "kernels/cpu/isa/vec.h"

// It needs what is before it.
#include "kernels/cpu/isa/ops_body.h"

}  // namespace

const OpTable& avx2_ops() { return kOps; }

}  // namespace moegauge::cpu
