// Records of known times, for tests of searches and decisions.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "harness/result/record.h"

namespace moegauge {

// `us` in every sample but for `noise`, a share of it, in turn above and below.
inline CaseRecord timed_record(const std::string& config, double us, std::size_t rows = 18,
                               double noise = 0) {
  CaseRecord record;
  record.coordinates.config = config;
  record.config.hash = "hash of " + config;
  Measured measured;
  for (std::size_t i = 0; i < rows; ++i) {
    measured.latency.samples.push_back(us * (1 + (i / 2 % 2 == 0 ? noise : -noise)));
  }
  measured.latency.median = us;
  measured.latency.min = us * (1 - noise);
  record.outcome = std::move(measured);
  return record;
}

inline CaseRecord failed_record(const std::string& config, Status status, std::string reason) {
  CaseRecord record;
  record.coordinates.config = config;
  record.outcome = Unmeasured{status, std::move(reason), {}};
  return record;
}

}  // namespace moegauge
