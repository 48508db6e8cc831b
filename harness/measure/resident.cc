#include "harness/measure/resident.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "reference/base/process_limits.h"

namespace moegauge {
namespace {

constexpr std::int64_t kSlotsDivide = 8;

}  // namespace

std::int64_t choose_weight_sets(std::int64_t wanted, double bytes_per_set, double memory_bytes) {
  const double fitting = bytes_per_set > 0 ? memory_bytes / 2 / bytes_per_set : 1;
  const auto divisible = [](std::int64_t sets) {
    if (sets >= kSlotsDivide) return sets / kSlotsDivide * kSlotsDivide;
    return sets >= 4 ? std::int64_t{4} : sets >= 2 ? std::int64_t{2} : std::int64_t{1};
  };
  const std::int64_t rounded_up = wanted > 4
                                      ? (wanted + kSlotsDivide - 1) / kSlotsDivide * kSlotsDivide
                                  : wanted > 2 ? 4
                                               : std::max<std::int64_t>(1, wanted);
  if (fitting >= static_cast<double>(rounded_up)) return rounded_up;
  return divisible(static_cast<std::int64_t>(fitting));
}

double available_memory_bytes() {
  const std::int64_t available = available_memory();
  return available > 0 ? static_cast<double>(available) : std::numeric_limits<double>::infinity();
}

ResidentLayer::ResidentLayer(const Backend& backend, const Problem& problem,
                             std::unique_ptr<LoadedLayer> layer)
    : device_(backend.device()),
      layer_(std::move(layer)),
      ceilings_([&backend, problem] { return backend.measure_ceilings(problem); }) {}

Expected<std::unique_ptr<ResidentLayer>, Fault> ResidentLayer::load(const Backend& backend,
                                                                    const Problem& problem,
                                                                    const ExpertSource& experts,
                                                                    std::int64_t sets) {
  for (;;) {
    auto layer = backend.load(problem, experts, static_cast<int>(sets));
    if (layer) {
      std::unique_ptr<ResidentLayer> resident(
          new ResidentLayer(backend, problem, std::move(layer).value()));
      return resident;
    }
    Fault fault = std::move(layer).error();
    if (fault.kind != FaultKind::out_of_memory || sets == 1) return Unexpected{std::move(fault)};
    sets = choose_weight_sets(sets / 2, 1, std::numeric_limits<double>::infinity());
  }
}

}  // namespace moegauge
