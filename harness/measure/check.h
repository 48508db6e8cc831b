// Check, then time: whether a plan returns what it should. A case that is wrong has no latency.
//
// A checked run draws its tokens from a pool of at most 256 distinct rows, so that the oracle
// computes 256 rows and every one of 8192 output rows is still compared. Rows that a file gives are
// their own pool.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/result/record.h"
#include "kernels/backend.h"
#include "reference/inputs.h"
#include "reference/oracle.h"

namespace moegauge {

inline constexpr std::int64_t kPoolRows = 256;

struct CheckInputs {
  OwnedInputs pool;       // the distinct rows: what the oracle computes
  PooledInputs repeated;  // what the kernel is given; its index maps rows to pool rows
};
// `tokens` rows of the pool, every one of them if there are as many.
CheckInputs make_check_inputs(OwnedInputs pool, const Layer& layer, std::int64_t tokens,
                              std::uint64_t seed);
// With a generated pool of at most kPoolRows.
CheckInputs make_check_inputs(const Layer& layer, Distribution distribution, const RoutingLaw& law,
                              std::int64_t tokens, std::uint64_t seed,
                              const Scheme* scheme = nullptr);

// y of one plan against the truth: the three errors over every row.
ErrorReport measure_errors(const Layer& layer, std::span<const std::uint16_t> y, const Truth& truth,
                           std::span<const std::int32_t> pool_index);

// Which limits an error breaks, both numbers named, or nothing. Written so that a NaN breaks them:
//   implementation.relative_l2 and .worst_token above the scheme's limits, any non-finite output,
//   and where the format costs something also total above limits.total() (scheme.h).
std::optional<std::string> broken_limits(const ErrorReport& error, const ErrorLimits& limits);

struct CheckOutcome {
  ErrorReport error;
  std::optional<std::string> wrong;  // why the case is inaccurate
  // Why nothing is known of it: a check that compared no row is no check.
  std::optional<std::string> not_comparable;
  std::vector<std::uint16_t> output = {};  // what was compared with the truth
};

// What a plan's outputs are held against.
struct Yardstick {
  const Layer& layer;
  const CheckInputs& inputs;
  const Truth& truth;
  const ErrorLimits limits;
};

// Runs the pool's rows, each time on buffers poisoned with NaN: once one call, whose output is
// compared with the truth; once each of the `weight_sets` that `request` rotates over; and once
// `request` as the timing will run it, so that every slot, weight set and launch path that is timed
// has answered. All outputs must agree in every bit. Other rows run before the first, so that a
// workspace that poison() forgot holds nothing right. The fault may be a broken contract: an output
// that is not NaN after poison() would vouch for a kernel that wrote nothing.
Expected<CheckOutcome, Fault> check_plan(Plan& plan, const Yardstick& yardstick,
                                         const RunRequest& request, std::int64_t weight_sets);

// After the timing: slot 0 once more with the pool's rows, poisoned before, compared with the
// truth.
Expected<CheckOutcome, Fault> check_replay(Plan& plan, const Yardstick& yardstick,
                                           const RunRequest& request);

// Why a timed output cannot be right, or nothing: "y[3, 17] of slot 2 is not finite".
Expected<std::optional<std::string>, Fault> non_finite_output(Plan& plan, const Layer& layer,
                                                              std::int64_t tokens);

}  // namespace moegauge
