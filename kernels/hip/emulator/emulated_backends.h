// Backends that run the AMD kernels on the CPU: "hip-emulated:gfx942" and its like. For tests only:
// they are in no list of backends, so `auto` never finds them, and their times say nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "kernels/backend.h"

namespace moegauge {

// One for each architecture. Threads and blocks run in their own order.
std::span<const Backend* const> emulated_backends();
// One with an order of threads and blocks of its own.
std::unique_ptr<const Backend> make_emulated_backend(std::string_view architecture,
                                                     std::uint64_t seed);

}  // namespace moegauge
