// The truth of ops/grouped_gemm.cc.
#pragma once

#include <memory>
#include <span>

#include "reference/ops/op.h"

namespace moegauge {

// Rows of a that are equal in every bit are computed once. As Op::truth.
std::unique_ptr<const OpTruth> grouped_truth(const OpProblem& problem,
                                             std::span<const Tensor> weights,
                                             std::span<const Tensor> inputs, const OpDraw* drawn,
                                             int threads);

}  // namespace moegauge
