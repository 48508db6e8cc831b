// Stands in for a backend in a build that found no toolkit headers, so that the table of backends,
// and what `list` says, are the same everywhere. Needs no CUDA header itself.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/backend.h"

namespace moegauge {

class AbsentBackend final : public Backend {
 public:
  // `headers`: those that the build did not find.
  AbsentBackend(std::string_view name, const std::string& headers, std::string_view config_folder)
      : name_(name),
        config_folder_(config_folder),
        reason_("built without the CUDA toolkit's headers (" + headers + ")") {}

  std::string_view name() const override { return name_; }
  Availability availability() const override {
    return {.present = false,
            .detail = reason_,
            .remedy = "install the CUDA toolkit (12.0 or later) and configure again"};
  }
  Device device() const override { return {}; }
  std::optional<Refusal> refuses(const Problem&) const override {
    // Not the device's absence: what these kernels would serve is not known in this build.
    return Refusal{RefusalReason::instruction_set, reason_};
  }
  Config default_config(const Problem&) const override { return {}; }
  std::optional<Refusal> refuses_config(const Problem& problem, const Config&) const override {
    return refuses(problem);
  }
  std::string_view config_folder() const override { return config_folder_; }
  Expected<std::unique_ptr<LoadedLayer>, Fault> load(const Problem&, const ExpertSource&,
                                                     int) const override {
    return Unexpected{Fault{FaultKind::infrastructure, reason_}};
  }
  Expected<Ceilings, Fault> measure_ceilings(const Problem&) const override {
    return Unexpected{Fault{FaultKind::infrastructure, reason_}};
  }

 private:
  const std::string_view name_, config_folder_;
  const std::string reason_;
};

}  // namespace moegauge
