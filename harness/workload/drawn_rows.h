// Rows that the generator makes for a layer some of whose experts may be fused shared ones.
#pragma once

#include <cstdint>
#include <string>

#include "harness/workload/workload.h"

namespace moegauge {

// The law that `routing` names chooses among all experts but the last `fused`; those follow in
// every token's row, at weight 1. Throws InputError.
OwnedInputs drawn_rows(const Problem& problem, std::int64_t fused, const Generator& generator,
                       const std::string& routing, std::int64_t tokens, std::uint64_t stream);

}  // namespace moegauge
