// Which layer the tensors of a file belong to, and whether they fit it.
#pragma once

#include "harness/suite/suite.h"
#include "harness/workload/replay_file.h"
#include "kernels/backend.h"

namespace moegauge {

// What tensors and fields say of a layer, for the model "replay". Throws InputError where a size
// follows from none of them, or they contradict each other.
Model replayed_model(const ReplayFile& file, const std::string& fields, const Scheme& scheme);

// Puts into the layer what only the file knows: the expert map, that there are biases, and of how
// many columns the scale groups of w2 are, where a group index scatters this rank's over them.
void take_from_file(const ReplayFile& file, const Scheme& scheme, Layer& layer);

// The file's expert_map; empty where it has none. Throws InputError where it does not fit `experts`
// or names no local expert, or one twice.
std::vector<std::int32_t> given_expert_map(const ReplayFile& file, std::int64_t experts);

// Refuses router_logits for a model without a routing rule, and a correction_bias beside a rule
// that does not read it.
void check_routing(const ReplayFile& file, const Model& model);

// Throws InputError where a tensor does not fit the problem: names file, tensor, what it is and
// what it should be. Looks at the values only of what indexes something. Router logits are of all
// experts but the last `fused`.
void check_tensors(const ReplayFile& file, const Problem& problem, std::int64_t fused);

}  // namespace moegauge
