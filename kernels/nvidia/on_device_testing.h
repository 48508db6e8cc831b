// The kernels of a backend on a device, through its own face: against the fp64 oracle, and what a
// caller may count on besides. A backend's test defines the two functions below and compiles
// on_device_testing.cc. Skipped where there is no device.
#pragma once

#include <ostream>
#include <vector>

#include "kernels/backend.h"

namespace moegauge::on_device {

struct LayerCase {
  const char* name;
  const char* scheme;
  Layer layer;
  std::vector<Config> configs;
  friend std::ostream& operator<<(std::ostream& out, const LayerCase& c) { return out << c.name; }
};

// What is tested, and on what.
const Backend& backend();
std::vector<LayerCase> layer_cases();

// The first `local` of so many experts are of this rank.
std::vector<std::int32_t> first_local(std::size_t experts, std::int32_t local);

}  // namespace moegauge::on_device
