// How long a device is left idle between rows, so that what is timed is the kernel and not how long
// the card has been busy.
//
// A card that multiplies without pause reaches its power limit within a tenth of a second and then
// clocks down: the same kernel is 10 to 17% slower from there on (docs/performance/cuda-log.md,
// step 72). A median over rows of both kinds says which of them were more, and that turns on
// chance. With as much idle time as busy time the card stays at one clock.
#pragma once

#include <optional>

#include "kernels/backend.h"

namespace moegauge {

// After a row that found the clocks held down. On an H200 a pause of 50 ms left 3% of the loss and
// one of 100 ms nothing.
inline constexpr double kRecoverySeconds = 0.1;

// Seconds of rest after a row of `row_seconds` that left the device in `state`. A device that tells
// nothing of itself (a CPU) rests never: nothing holds its clocks down that a pause of this length
// would mend, and its caches would be others' meanwhile.
double rest_after(double row_seconds, const std::optional<DeviceState>& state);

}  // namespace moegauge
