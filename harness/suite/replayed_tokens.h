// How many tokens a file of tensors holds.
#pragma once

#include <cstdint>
#include <filesystem>

#include "harness/suite/suite.h"

namespace moegauge {

// Rows of x, topk_ids, topk_weights or router_logits, the first of them that is there. Throws
// InputError where none is, or where it is no matrix.
std::int64_t replayed_tokens(const std::filesystem::path& file);

// Of a case of a single op, by what the op infers from the file's tensors.
std::int64_t replayed_op_tokens(const CaseCoordinates& c, const std::filesystem::path& root);

}  // namespace moegauge
