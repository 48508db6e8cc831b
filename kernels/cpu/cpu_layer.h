// A layer resident in the CPU backend, and its plans.
#pragma once

#include <map>
#include <memory>

#include "kernels/backend.h"
#include "kernels/cpu/isa_level.h"
#include "kernels/cpu/packed_weights.h"
#include "kernels/cpu/schemes/cpu_scheme.h"

namespace moegauge::cpu {

class CpuLoadedLayer final : public LoadedLayer {
 public:
  // Packs every expert. Throws std::bad_alloc.
  CpuLoadedLayer(const Problem& problem, const Served& served, IsaLevel level,
                 const ExpertSource& experts, int weight_sets);

  std::int64_t weight_bytes() const override { return weights_->bytes(); }
  int weight_sets() const override { return weights_->sets(); }
  Expected<std::unique_ptr<Plan>, Fault> plan(std::int64_t tokens, const Config& config,
                                              int slots) override;

 private:
  std::shared_ptr<ThreadPool> pool(int threads);

  Problem problem_;
  Served served_;
  IsaLevel level_;
  std::map<int, std::shared_ptr<ThreadPool>> pools_;  // by threads; plans that agree share one
  std::unique_ptr<const PackedWeights> weights_;
};

}  // namespace moegauge::cpu
