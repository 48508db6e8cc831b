// Kernels that are wrong on purpose, for the tests of the harness: each wraps the cpu backend and
// spoils one thing. A check that lets one of them pass is no check. Linked into test executables
// only, never into the shipped binary.
//
// Wrong results ("mutant:" before each):
//   zeros                  y is zero
//   stale                  y keeps what was in it
//   dropped_k_tail         the first GEMM leaves out the last sixteenth of K
//   swapped_gate_up        gate and up change places
//   wrong_expert           each expert has its neighbour's weights (refused with one local expert)
//   doubled_router_weight  router weights count twice
//   shifted_scale          each weight scale is its neighbour's (refused without two scales)
//   dropped_token          the middle token is not computed
//   bad_row                the middle row has the wrong sign
//   nan                    one element of y is NaN
//   nondeterministic       every second run has a bad row, the first has not
//   weight_set             a bad row with the middle one of the weight sets, and with no other
//   earlier_row            the middle row is that of the run before, once there was one
// A broken contract of backend.h:
//   unpoisoned             poison() fills nothing
// Faults, on every run:
//   segv, abort, exit      the process ends by SIGSEGV, by SIGABRT, with exit code 0
//   hang                   run never returns
//   out_of_memory          run returns that fault
#pragma once

#include <span>

#include "kernels/backend.h"

namespace moegauge {

std::span<const Backend* const> mutant_backends();

}  // namespace moegauge
