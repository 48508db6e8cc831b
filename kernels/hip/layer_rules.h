// What the kernels serve, by rule, wherever they run.
#pragma once

#include <optional>

#include "kernels/backend.h"
#include "kernels/hip/architecture.h"

namespace moegauge::hip {

std::optional<Refusal> refuses_layer(const Problem& problem, const Architecture& architecture);

}  // namespace moegauge::hip
