// In which order cases are measured, and which of them together.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "harness/suite/suite.h"

namespace moegauge {

// What one worker process measures: cases that share loaded weights (model, scheme, tp, ep, inputs;
// `hot` apart from the cold modes, since it keeps a single weight set).
struct Group {
  std::vector<std::size_t> cases;                // indices into the run's cases
  std::vector<std::vector<std::size_t>> points;  // positions in `cases`: rivals, measured together
};

// The order of the suite is the priority: groups and points come in the order of their first case.
std::vector<Group> schedule(std::span<const CaseCoordinates> cases);

// For a run whose time is limited: every group's first point, then two more of each, then four, and
// so on, so that each group has something before any has all. Weights are loaded once per slice,
// which doubling keeps to the logarithm of a group's points.
std::vector<Group> in_slices(const std::vector<Group>& groups);

// Shard `index` (1-based) of `count`: whole points, dealt in turn, so that rivals stay together.
// Returns the indices of the cases kept.
std::vector<std::size_t> shard(std::span<const CaseCoordinates> cases, std::size_t index,
                               std::size_t count);

}  // namespace moegauge
