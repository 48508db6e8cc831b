// One case's record, and a whole result. The types make contradictions impossible: only a case that
// passed its check has a latency, and a case that did not has a reason.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "harness/result/end_to_end.h"
#include "harness/suite/suite.h"
#include "reference/error.h"
#include "reference/layer.h"
#include "reference/numerics.h"

namespace moegauge {

enum class Status : std::uint8_t {
  ok,
  inaccurate,
  unsupported,
  refused_config,
  crashed,
  timeout,
  out_of_memory,
  infrastructure,
  error,
  skipped,
};
std::string_view to_string(Status status);

struct LatencySummary {  // microseconds
  double median = 0, ci_low = 0, ci_high = 0, p10 = 0, p90 = 0, min = 0, max = 0, mean = 0;
  std::vector<double> samples = {};  // raw, in the order measured
};

struct ErrorReport {
  ErrorMetrics implementation = {}, quantization = {}, total = {};
  // "weights and activations before quantisation", or "dequantised checkpoint weights".
  std::string quantization_of = {};
};

struct ConfigRecord {
  std::string source = {};               // default, tuned, file, inline
  std::string file = {};                 // of a tuned config; else empty
  std::optional<std::int64_t> key = {};  // the batch size entry used
  std::map<std::string, std::int64_t> values = {};
  std::string hash = {};                // of what was compiled
  std::vector<std::string> stale = {};  // metadata keys of the file that no longer match
};

struct Roofline {
  double floor_us = 0;
  double floor_with_intermediates_us = 0;
  double fraction = 0;  // floor / median
};

struct Checked {
  std::int64_t tokens = 0, rows = 0;  // distinct pool rows computed by the oracle; rows compared
};

// The layer that was checked. Names of models say nothing of it: files change.
struct LayerShape {
  std::int64_t experts = 0, local_experts = 0, top_k = 0;
  std::int64_t hidden_size = 0, intermediate_size = 0;  // N of the rank
  Dtype dtype = Dtype::bf16;
  bool operator==(const LayerShape&) const = default;
};
LayerShape shape_of(const Layer& layer);
// "E=128 (16 here), top_k=8, K=2048, N=768, bf16".
std::string describe(const LayerShape& shape);

// What both outcomes of the check know.
struct CheckResult {
  std::optional<LayerShape> layer = {};  // files of before do not say
  std::string executed_scheme = {};
  Numerics numerics = {};
  ErrorReport error = {};
  Checked checked = {};
};

struct Measured {  // status ok
  CheckResult check = {};
  LatencySummary latency = {};
  double tflops = 0, gbytes_per_s = 0;
  Roofline roofline = {};
  std::int64_t rounds = 0;
  bool extrapolated = false;  // tokens outside the tuned file's range
  bool unstable = false, suspect = false;
  std::string suspect_reason = {};
  std::map<std::string, double> stages_us = {};
  nlohmann::ordered_json telemetry = {};  // null where the device tells nothing
};

struct Unmeasured {                       // every other status
  Status status = Status::error;          // never ok
  std::string reason = {};                // never empty
  std::optional<CheckResult> check = {};  // of an inaccurate case
  // Of an unsupported case: the backends asked for whose device or driver is not on this machine,
  // as opposed to those that are here and refused.
  std::vector<std::string> absent_backends = {};
};

struct CaseRecord {
  CaseCoordinates coordinates = {};
  std::string backend = {};  // resolved: never "auto" once something ran
  std::uint64_t seed = 0;
  ConfigRecord config = {};
  std::variant<Measured, Unmeasured> outcome = Unmeasured{};
  std::string device = {};                 // device key
  std::string repro = {};                  // command line that repeats this case alone
  std::vector<std::string> attempts = {};  // what earlier attempts ended with, oldest first
  // Fields of a newer minor version that this build does not know, kept as they came: an object of
  // what the line had beyond what this build writes, nested where it was nested.
  nlohmann::ordered_json unknown = {};

  std::string id() const;
  Status status() const;
  const Measured* measured() const { return std::get_if<Measured>(&outcome); }
};

// Ratio of two cases of one point, measured interleaved.
struct Comparison {
  std::string point = {};      // point_id
  std::string a = {}, b = {};  // case ids; ratio is latency(a) / latency(b)
  double ratio = 1, ci_low = 1, ci_high = 1;
  std::int64_t pairs = 0;
};

struct Result {
  // Ours; Google Benchmark's keys are in `machine`.
  std::vector<std::pair<std::string, std::string>> context = {};
  // Google Benchmark's context keys as read from a file, so that a rewritten file still names the
  // machine that measured. Null: the writer describes this machine.
  nlohmann::ordered_json machine = {};
  std::vector<Comparison> comparisons = {};
  std::vector<CaseRecord> cases = {};
  // Serving and accuracy, in a file of `moegauge ingest`; a point and variant once.
  std::vector<EndToEndRow> end_to_end = {};
  // Of the file read; written back, so that readers know that fields of a newer version may follow.
  std::int64_t minor_version = 0;
  nlohmann::ordered_json unknown = {};  // top-level keys of a newer minor version
};

}  // namespace moegauge
