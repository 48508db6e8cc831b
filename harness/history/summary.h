// What the history keeps of a result: a line per case and run, without samples. Everything else
// stays in the result files, from which a history can be built again.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/result/record.h"

namespace moegauge {

// A run of one result file. Times are seconds since 1970 in UTC.
struct HistoryRun {
  std::int64_t id = 0;  // in its history
  // Of all that was measured and when, not of how the file spells it: the same measurements are one
  // run, whatever paths were cut out of the file or however it was laid out.
  std::string content = {};
  std::string commit = {};  // empty where the result does not say
  std::optional<std::int64_t> commit_time = {};
  std::int64_t run_time = 0;
  std::string suite = {};
  std::int64_t cases = 0, ok_cases = 0;

  // What runs are in the order of.
  std::int64_t time() const { return commit_time.value_or(run_time); }
};

inline constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

// relative L2 and worst token of each of the three errors.
struct ErrorSummary {
  double implementation = no_number, quantization = no_number, total = no_number;
  double worst_implementation = no_number, worst_quantization = no_number, worst_total = no_number;
};

// A case in one run. Numbers that are not there are NaN.
struct HistoryPoint {
  std::int64_t run = 0;
  std::int64_t time = 0;  // HistoryRun::time()
  Status status = Status::error;
  bool unstable = false, suspect = false;
  bool held = false;         // the gate that added it held it back: it is no baseline
  std::string kernel = {};   // hash of what was compiled
  std::int64_t variant = 0;  // of the case: config values, numerics, ... (HistoryStore::variant)
  std::string config = {};   // hash of the config's values
  // Microseconds: what the result shows, and what processes are compared by (log_latency).
  double median = no_number, ci_low = no_number, ci_high = no_number, centre = no_number;
  double within = no_number;  // standard error of ln(centre) that the process's own samples show
  ErrorSummary errors = {};

  // Is a measurement that can be compared.
  bool counts() const { return status == Status::ok && !suspect && centre > 0; }
  // May be what later runs are held against.
  bool serves() const { return counts() && !held; }
};

struct CaseSummary {
  std::string id = {};
  std::string device = {};   // history_device_key
  std::string variant = {};  // the case's record without what differs from run to run, one line
  HistoryPoint point = {};   // `run`, `time` and `variant` are the history's to fill
};

struct RunSummary {
  HistoryRun run = {};
  std::vector<CaseSummary> cases = {};
};

// What the command line may say of a result that does not say it itself.
struct GivenCommit {
  std::string commit = {};
  std::optional<std::int64_t> time = {};
};

// HistoryRun::content of a result.
std::string content_of(const Result& result);

// Throws InputError that names `where`: no date, no case, a time that is none.
RunSummary summarise(const Result& result, const GivenCommit& given, const std::string& where);

// A context key with it in front and a device's name after it says more of the device.
inline const std::string device_context_prefix = "device.";

// Of a key of this project's own; empty where it is not there.
std::string context_value(const Result& result, std::string_view key);

// The record's device with what the context says of it: memory, driver, power cap, MIG and ECC.
std::string history_device_key(const std::string& device, const Result& result);

// Of the values that a case ran with.
std::string config_hash(const ConfigRecord& config);

// What a variant's line says: a record without numbers.
CaseRecord read_variant(const std::string& line);
// A record as the history remembers it: no samples, the interval in place of quantiles. Requires a
// point that is ok and the variant of it.
CaseRecord record_from(const HistoryPoint& point, CaseRecord variant);

}  // namespace moegauge
