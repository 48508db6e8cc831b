// For the files of this folder: scales of operands that are quantised on both sides, fp32 or E8M0,
// one per rectangle of weights.
#pragma once

#include <optional>

#include "kernels/cpu/schemes/cpu_scheme.h"

namespace moegauge::cpu {

// nullopt: a granularity that the kernels do not have.
std::optional<ActivationScale> activation_scale(const OperandTraits& weight,
                                                const OperandTraits& activation);
Scaling scaling(const OperandTraits& activation);

// The scale of a row and group, read from [ceil(rows / unit), groups].
float unit_scale(const ConstMatrix& w, const Recipe& recipe, std::int64_t row, std::int64_t group);

}  // namespace moegauge::cpu
