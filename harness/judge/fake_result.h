// A small result for tests of verdicts and of what is printed about them.
#pragma once

#include "harness/result/record.h"

namespace moegauge {

inline ErrorMetrics fake_error(double relative_l2, double worst_token) {
  ErrorMetrics metrics;
  metrics.relative_l2 = relative_l2;
  metrics.worst_token = worst_token;
  return metrics;
}

inline CaseRecord fake_case(std::int64_t tokens, double median_us) {
  CaseRecord record;
  record.coordinates.model = "fake-model";
  record.coordinates.scheme = "bf16";
  record.coordinates.backend = "cpu";
  record.coordinates.tokens = tokens;
  record.backend = "cpu";
  record.seed = 7;
  record.device = "fake device";
  record.config = {
      .source = "default", .values = {{"BLOCK_SIZE_M", 16}}, .hash = "0123456789abcdef"};

  Measured measured;
  measured.check.layer = {
      {.experts = 8, .local_experts = 8, .top_k = 2, .hidden_size = 256, .intermediate_size = 128}};
  measured.check.executed_scheme = "bf16";
  measured.check.error.implementation = fake_error(0.001, 0.002);
  measured.check.error.quantization = fake_error(0.004, 0.006);
  measured.check.error.total = fake_error(0.0041, 0.0062);
  measured.check.checked = {.tokens = tokens, .rows = tokens};
  LatencySummary& latency = measured.latency;
  for (int round = -4; round <= 4; ++round) {
    latency.samples.insert(latency.samples.end(), 2, median_us * (1 + 0.001 * round));
  }
  latency.median = latency.mean = median_us;
  latency.ci_low = median_us * 0.997;
  latency.ci_high = median_us * 1.003;
  latency.min = latency.p10 = median_us * 0.996;
  latency.max = latency.p90 = median_us * 1.004;
  measured.roofline = {
      .floor_us = median_us / 2, .floor_with_intermediates_us = median_us / 2, .fraction = 0.5};
  measured.rounds = 9;
  record.outcome = std::move(measured);
  return record;
}

// Three ok cases: M = 1, 16 and 256, of 100, 200 and 900 us.
inline Result fake_result() {
  Result result;
  result.cases = {fake_case(1, 100), fake_case(16, 200), fake_case(256, 900)};
  return result;
}

inline void scale_latency(CaseRecord& record, double factor) {
  LatencySummary& latency = std::get<Measured>(record.outcome).latency;
  for (double* value : {&latency.median, &latency.ci_low, &latency.ci_high, &latency.p10,
                        &latency.p90, &latency.min, &latency.max, &latency.mean}) {
    *value *= factor;
  }
  for (double& sample : latency.samples) sample *= factor;
}

}  // namespace moegauge
