// Stands in for the library baseline in a build that found no toolkit headers, so that the table of
// backends, and what `list` says, are the same everywhere.
#include "kernels/backend.h"

namespace moegauge {
namespace {

constexpr const char* reason =
    "built without the CUDA toolkit's headers (cuda.h, nvrtc.h, cublasLt.h)";

class AbsentCublasLt final : public Backend {
 public:
  std::string_view name() const override { return "cublaslt"; }
  Availability availability() const override {
    return {.present = false,
            .detail = reason,
            .remedy = "install the CUDA toolkit (12.0 or later) and configure again"};
  }
  Device device() const override { return {}; }
  std::optional<Refusal> refuses(const Problem&) const override {
    // Not the device's absence: what these kernels would serve is not known in this build.
    return Refusal{RefusalReason::instruction_set, reason};
  }
  Config default_config(const Problem&) const override { return {}; }
  std::optional<Refusal> refuses_config(const Problem& problem, const Config&) const override {
    return refuses(problem);
  }
  std::string_view config_folder() const override { return ""; }
  Expected<std::unique_ptr<LoadedLayer>, Fault> load(const Problem&, const ExpertSource&,
                                                     int) const override {
    return Unexpected{Fault{FaultKind::infrastructure, reason}};
  }
  Expected<Ceilings, Fault> measure_ceilings(const Problem&) const override {
    return Unexpected{Fault{FaultKind::infrastructure, reason}};
  }
};

}  // namespace

const Backend& cublaslt_backend() {
  static const AbsentCublasLt backend;
  return backend;
}

}  // namespace moegauge
