// Records for tests, with every field away from its default.
#pragma once

#include <filesystem>
#include <string>

#include "harness/result/record.h"

namespace moegauge {

// A folder in memory where there is one: some tests sync thousands of files.
inline std::filesystem::path test_folder() {
  const std::filesystem::path memory = "/dev/shm";
  return std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
}

inline CaseCoordinates test_coordinates(std::int64_t tokens = 16) {
  CaseCoordinates c;
  c.model = "qwen3-30b-a3b";
  c.scheme = "fp8_block";
  c.tp = 4;
  c.config = "tuned";
  c.tokens = tokens;
  return c;
}

inline CheckResult test_check() {
  CheckResult check;
  check.executed_scheme = "fp8_block";
  check.numerics.act_out = Precision::activation_dtype;
  check.numerics.accumulate = Accumulate::reduced;
  check.error.implementation.relative_l2 = 0.0005;
  check.error.implementation.worst_token = 0.002;
  check.error.implementation.worst_token_row = 3;
  check.error.implementation.max_scaled = 0.001;
  check.error.implementation.cosine = 0.999;
  check.error.implementation.matched = 0.75;
  check.error.implementation.first_bad = 6144;
  check.error.quantization.relative_l2 = 0.0625;
  check.error.total.relative_l2 = 0.0626;
  check.error.quantization_of = "weights and activations before quantisation";
  check.checked = {16, 16};
  return check;
}

inline CaseRecord test_measured(std::int64_t tokens = 16) {
  Measured measured;
  measured.check = test_check();
  measured.latency.median = 120.5;
  measured.latency.ci_low = 120;
  measured.latency.ci_high = 121;
  measured.latency.p10 = 119;
  measured.latency.p90 = 125;
  measured.latency.min = 118.25;
  measured.latency.max = 130;
  measured.latency.mean = 121.25;
  measured.latency.samples = {118.25, 120.5, 125};
  measured.tflops = 0.5;
  measured.gbytes_per_s = 12.5;
  measured.roofline = {90.25, 95, 0.749};
  measured.rounds = 3;
  measured.extrapolated = true;
  measured.unstable = true;
  measured.suspect = true;
  measured.suspect_reason = "faster than the floor";
  measured.stages_us = {{"gemm1", 60.5}, {"quantize", 2}};
  measured.telemetry = {{"clock_mhz", {2900, 2800}}};
  CaseRecord record;
  record.coordinates = test_coordinates(tokens);
  record.backend = "cpu";
  record.seed = 18446744073709551615u;
  record.config.source = "tuned";
  record.config.file = "kernels/cpu/configs/E=128,N=192,device_name=x.json";
  record.config.key = 16;
  record.config.values = {{"BLOCK_SIZE_M", 16}, {"num_threads", 2}};
  record.config.hash = "0123456789abcdef";
  record.config.stale = {"compiler: file has \"12\", this run \"13\""};
  record.outcome = measured;
  record.device = "cpu/avx512/2";
  record.repro = "moegauge run suites/quick.json --filter '*'";
  record.attempts = {"crashed: signal 11"};
  return record;
}

inline CaseRecord test_unmeasured(Status status, const std::string& reason,
                                  std::int64_t tokens = 16) {
  CaseRecord record;
  record.coordinates = test_coordinates(tokens);
  Unmeasured unmeasured;
  unmeasured.status = status;
  unmeasured.reason = reason;
  record.outcome = unmeasured;
  record.device = "cpu/avx512/2";
  record.repro = "moegauge run";
  return record;
}

}  // namespace moegauge
