// The worker's own loop.
#pragma once

#include <span>

#include "harness/worker/process.h"
#include "kernels/backend.h"

namespace moegauge {

// Reads a job, measures the points that are asked for, answers; returns at the end of the requests
// or after a tainted point. Throws InputError where the pipe or the job is no good.
void serve(const WorkerPipes& pipes, std::span<const Backend* const> backends);

}  // namespace moegauge
