// Single ops that are wrong on purpose, beside mutants.h: each backend wraps the cpu backend and
// spoils the tensors of one op. Linked into test executables only.
//
// Wrong results ("op_mutant:" before each), of every op unless one is named:
//   zeros, stale             outputs are all zero; keep what was in them
//   nondeterministic         every second run changes the first entry of the first output
//   unpoisoned               poison() fills nothing: a broken contract of backend.h
//   route_bias_in_weight     weighs by logit plus bias; of route with a correction bias
//   route_last_of_ties       equal logits go to the higher id; of route without such a bias
//   align_wrong_expert       the first block is said to be the next expert's; of align
//   align_lost_pair          one pair stands twice, its neighbour not at all; of align
//   quantize_truncates       rounds codes towards zero; of quantize
//   quantize_shifted_scale   the scale is twice what it should be; of quantize
//   activation_swapped       gate and up change places; of activation
//   reduce_doubled_weight    weighs the last slot twice; of reduce
//   reduce_dropped_slot      leaves the last slot out; of reduce
//   gemm_dropped_k_tail      leaves out the last sixteenth of the contraction; of grouped_gemm
//   gemm_wrong_expert        the first two experts change places; of grouped_gemm
#pragma once

#include <span>

#include "kernels/backend.h"

namespace moegauge {

std::span<const Backend* const> op_mutant_backends();

}  // namespace moegauge
