// The AMD GPU of this machine, with the code object for its architecture.
#pragma once

#include <memory>
#include <string>

#include "kernels/hip/processor.h"
#include "kernels/hip/runtime/hip_api.h"

namespace moegauge::hip {

struct GpuDescription {
  std::string name;  // as the runtime calls it
  std::int64_t memory_bytes = 0;
  std::string runtime;  // "hip 6.2"
  std::uint64_t code_hash = 0;
};

class Gpu : public Processor {
 public:
  virtual const GpuDescription& description() const = 0;
};

// Device 0; what is missing, as a sentence for `doctor` and `list`. `folder`: where the code
// objects lie, moegauge_hip_ARCH.co.
Expected<std::shared_ptr<const Gpu>, std::string> open_gpu(const Expected<HipApi, std::string>& api,
                                                           const std::string& folder);

// The architecture in a device's properties: "gfx942:sramecc+:xnack-"; empty if there is none.
std::string architecture_in(std::string_view properties);

}  // namespace moegauge::hip
