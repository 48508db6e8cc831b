// Expert weights spoiled on their way into a backend. Each source keeps a reference to the one it
// spoils.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace moegauge {

std::unique_ptr<const ExpertSource> swapped_gate_up(const Problem& problem,
                                                    const ExpertSource& experts);
std::unique_ptr<const ExpertSource> neighbours_weights(const Problem& problem,
                                                       const ExpertSource& experts);
std::unique_ptr<const ExpertSource> shifted_scales(const Problem& problem,
                                                   const ExpertSource& experts);

// Scales in one expert's matrix of `role`; 0 where the scheme has none.
std::size_t scale_count(const Problem& problem, Role role);

}  // namespace moegauge
