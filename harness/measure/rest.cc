#include "harness/measure/rest.h"

#include <algorithm>

namespace moegauge {

double rest_after(double row_seconds, const std::optional<DeviceState>& state) {
  if (!state) return 0;
  return state->throttle_reasons.empty() ? row_seconds : std::max(row_seconds, kRecoverySeconds);
}

}  // namespace moegauge
