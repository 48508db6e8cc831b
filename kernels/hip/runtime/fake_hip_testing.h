// A HIP runtime for tests, whose device is the emulator of gfx942: memory is the CPU's, kernels run
// when they are launched, and what is captured runs when the graph is launched. It counts what is
// there, so that a test can see that all of it goes again.
#pragma once

#include "kernels/hip/runtime/hip_api.h"

namespace moegauge::hip {

struct FakeHip {
  int devices = 1;
  std::string architecture = "gfx942:sramecc+:xnack-";
  HipError malloc_error = hip_success;
  HipError launch_error = hip_success;

  int memory = 0, streams = 0, events = 0, modules = 0, graphs = 0, graph_execs = 0;
  int launches = 0, graph_launches = 0, bad_handles = 0;
  int things() const { return memory + streams + events + modules + graphs + graph_execs; }
};

// Anew; its API, bound to functions of this file.
FakeHip& fake_hip();
HipApi fake_hip_api();

}  // namespace moegauge::hip
