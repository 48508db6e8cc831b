// One backend's copy of the layer: as many weight sets as `cold_weights` needs and memory allows,
// and the ceilings measured beside it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "harness/measure/timed_run.h"
#include "kernels/backend.h"

namespace moegauge {

// Rounds the sets wanted up to a number that slots (1, 2, 4 or 8) divide, and down to what fits
// half of the memory that the device has and this process may still take: 1, 2, 4 or a multiple
// of 8.
std::int64_t choose_weight_sets(std::int64_t wanted, double bytes_per_set, double memory_bytes);

// What this process may still allocate: the smaller of the machine's available memory and what is
// left of the control group's limit.
double available_memory_bytes();

class ResidentLayer {
 public:
  // Loads `sets` copies, fewer where memory runs out.
  static Expected<std::unique_ptr<ResidentLayer>, Fault> load(const Backend& backend,
                                                              const Problem& problem,
                                                              const ExpertSource& experts,
                                                              std::int64_t sets);

  LoadedLayer& layer() { return *layer_; }
  std::int64_t weight_sets() const { return layer_->weight_sets(); }
  const Device& device() const { return device_; }
  CeilingsMeter& ceilings() { return ceilings_; }
  WeightTurn& turn() { return turn_; }

 private:
  ResidentLayer(const Backend& backend, const Problem& problem, std::unique_ptr<LoadedLayer> layer);

  const Device device_;
  std::unique_ptr<LoadedLayer> layer_;
  CeilingsMeter ceilings_;
  WeightTurn turn_;
};

}  // namespace moegauge
