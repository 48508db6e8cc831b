// The weights of ops/grouped_gemm.cc: b and its parts, in the scheme's canonical storage.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "reference/ops/grouped_rows.h"
#include "reference/ops/op.h"

namespace moegauge {

// b, b_scale, b_zero_point and b_g_idx, those that the scheme has.
std::vector<TensorSpec> grouped_weights(const OpProblem& problem);

// Expert `expert`'s part of each, as its scheme reads it.
ConstMatrix expert_matrix(const GroupedShape& shape, const Layer& layer,
                          std::span<const Tensor> weights, std::int64_t expert);

// What drawn weights are quantised from.
std::unique_ptr<ExpertSource> experts_of(const OpProblem& problem, const OpDraw& draw);
std::vector<Tensor> draw_grouped_weights(const OpProblem& problem, const OpDraw& draw);

}  // namespace moegauge
