#include "harness/measure/check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <span>
#include <utility>

#include "reference/formats/bf16.h"
#include "reference/formats/fp16.h"

namespace moegauge {
namespace {

std::string exceeds(const char* name, double value, double limit) {
  char text[160];
  std::snprintf(text, sizeof text, "%s %.4g exceeds %.4g", name, value, limit);
  return text;
}

std::vector<double> decode(Dtype dtype, std::span<const std::uint16_t> y) {
  std::vector<double> values(y.size());
  std::ranges::transform(y, values.begin(), [dtype](std::uint16_t bits) -> double {
    return dtype == Dtype::bf16 ? bf16_to_float(bits) : fp16_to_float(bits);
  });
  return values;
}

// Rows of `pool` in the order of `index`.
std::vector<double> expand(std::span<const double> pool, std::span<const std::int32_t> index,
                           std::size_t cols) {
  std::vector<double> rows;
  rows.reserve(index.size() * cols);
  for (const std::int32_t row : index) {
    const auto begin =
        pool.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row) * cols);
    rows.insert(rows.end(), begin, begin + static_cast<std::ptrdiff_t>(cols));
  }
  return rows;
}

using Output = std::vector<std::uint16_t>;

Expected<Output, Fault> fetch(Plan& plan, const Layer& layer, std::int64_t tokens, int slot) {
  Output y(static_cast<std::size_t>(tokens * layer.hidden_size));
  if (auto fault = plan.fetch(slot, y)) return Unexpected{std::move(*fault)};
  return y;
}

bool is_nan(Dtype dtype, std::uint16_t bits) {
  const std::uint16_t infinity = dtype == Dtype::bf16 ? 0x7F80 : 0x7C00;
  return (bits & 0x7FFF) > infinity;
}

std::string element(std::int64_t at, const Layer& layer, int slot) {
  return "y[" + std::to_string(at / layer.hidden_size) + ", " +
         std::to_string(at % layer.hidden_size) + "] of slot " + std::to_string(slot);
}

// Trusts no backend: what poison() left is looked at.
std::optional<Fault> poison(Plan& plan, const Layer& layer, std::int64_t tokens) {
  if (auto fault = plan.poison()) return fault;
  for (int slot = 0; slot < plan.slots(); ++slot) {
    const auto y = fetch(plan, layer, tokens, slot);
    if (!y) return y.error();
    const auto left = std::ranges::find_if_not(
        *y, [&layer](std::uint16_t bits) { return is_nan(layer.dtype, bits); });
    if (left == y->end()) continue;
    return Fault{FaultKind::error,
                 "the backend breaks the contract of Plan::poison() in "
                 "kernels/backend.h: after it " +
                     element(left - y->begin(), layer, slot) +
                     " is not NaN, so that a missing write could not be seen"};
  }
  return std::nullopt;
}

// Nothing, or the fault.
std::optional<Fault> poisoned_run(Plan& plan, const Yardstick& yardstick,
                                  const RunRequest& request) {
  if (auto fault = poison(plan, yardstick.layer, yardstick.inputs.repeated.inputs.tokens)) {
    return fault;
  }
  auto seconds = plan.run(request);
  if (!seconds) return std::move(seconds).error();
  return std::nullopt;
}

std::optional<Fault> set_all_inputs(Plan& plan, const OwnedInputs& inputs) {
  for (int slot = 0; slot < plan.slots(); ++slot) {
    if (auto fault = plan.set_inputs(slot, inputs.view())) return fault;
  }
  return std::nullopt;
}

// The rows in reverse and with their signs turned: nothing that a kernel makes of them is right for
// the rows themselves.
OwnedInputs other_inputs(const OwnedInputs& inputs) {
  OwnedInputs other = inputs;
  std::ranges::reverse(other.x);
  for (std::uint16_t& bits : other.x) bits = static_cast<std::uint16_t>(bits ^ 0x8000);
  std::ranges::reverse(other.topk_ids);
  std::ranges::reverse(other.topk_weights);
  return other;
}

Expected<Output, Fault> fetch(Plan& plan, const Yardstick& yardstick, int slot) {
  return fetch(plan, yardstick.layer, yardstick.inputs.repeated.inputs.tokens, slot);
}

bool finite(Dtype dtype, std::uint16_t bits) {
  const std::uint16_t exponent = dtype == Dtype::bf16 ? 0x7F80 : 0x7C00;
  return (bits & exponent) != exponent;
}

// A row of the truth that is NaN although its token and router weights are finite: any output would
// be as right as any other. In fp64 nothing overflows, so that it is the weights.
std::optional<std::string> nan_of_weights(const Yardstick& yardstick) {
  const Layer& layer = yardstick.layer;
  const OwnedInputs& pool = yardstick.inputs.pool;
  const auto cols = static_cast<std::size_t>(layer.hidden_size);
  const auto top_k = static_cast<std::size_t>(layer.top_k);
  const auto row = [](const auto& all, std::size_t r, std::size_t width) {
    return std::span(all).subspan(r * width, width);
  };
  for (std::size_t r = 0; r < static_cast<std::size_t>(pool.tokens); ++r) {
    const auto truth = row(yardstick.truth.unquantized, r, cols);
    if (std::ranges::none_of(truth, [](double v) { return std::isnan(v); })) continue;
    if (!std::ranges::all_of(row(pool.x, r, cols),
                             [&](std::uint16_t bits) { return finite(layer.dtype, bits); }) ||
        !std::ranges::all_of(row(pool.topk_weights, r, top_k),
                             [](float v) { return std::isfinite(v); })) {
      continue;
    }
    return "nothing to compare in row " + std::to_string(r) +
           ": its token is finite and the exact answer is NaN; the weights, their scales or their "
           "biases hold what is not finite";
  }
  return std::nullopt;
}

// One call on slot 0, compared with the truth.
struct Judged {
  Output y;
  CheckOutcome outcome;
};
Expected<Judged, Fault> judge_one_call(Plan& plan, const Yardstick& yardstick,
                                       const RunRequest& request) {
  RunRequest once = request;
  once.calls = 1;
  if (auto fault = poisoned_run(plan, yardstick, once)) return Unexpected{std::move(*fault)};
  auto y = fetch(plan, yardstick, 0);
  if (!y) return Unexpected{std::move(y).error()};
  Judged judged{std::move(*y), {}};
  judged.outcome.error =
      measure_errors(yardstick.layer, judged.y, yardstick.truth, yardstick.inputs.repeated.index);
  judged.outcome.wrong = broken_limits(judged.outcome.error, yardstick.limits);
  if (!judged.y.empty() && judged.outcome.error.implementation.rows == 0) {
    judged.outcome.not_comparable = "nothing to compare: x holds an infinity in every one of the " +
                                    std::to_string(yardstick.inputs.repeated.inputs.tokens) +
                                    " rows";
  } else if (auto reason = nan_of_weights(yardstick)) {
    judged.outcome.not_comparable = std::move(*reason);
  }
  return judged;
}

std::optional<std::string> difference(const Output& first, const Output& again, const Layer& layer,
                                      int slot, std::size_t set) {
  if (first == again) return std::nullopt;
  const auto at = std::ranges::mismatch(first, again).in1 - first.begin();
  std::int64_t differing = 0;
  for (std::size_t i = 0; i < first.size(); ++i) differing += first[i] != again[i];
  const std::string where = set == 0 ? "" : ", on weight sets 0 and " + std::to_string(set) + ",";
  return "not deterministic: two runs of the same rows" + where + " differ in " +
         std::to_string(differing) + " of " + std::to_string(first.size()) + " elements, first " +
         element(at, layer, slot);
}

// Runs `request`, which touches every slot or the first `calls` of them, and says which of the
// outputs is not the first one.
Expected<std::optional<std::string>, Fault> repeat(Plan& plan, const Yardstick& yardstick,
                                                   const RunRequest& request,
                                                   std::int64_t weight_sets, const Output& first) {
  if (auto fault = poisoned_run(plan, yardstick, request)) return Unexpected{std::move(*fault)};
  const std::int64_t slots = plan.slots();
  const std::int64_t begin = std::max<std::int64_t>(0, request.calls - slots);
  for (std::int64_t call = begin; call < request.calls; ++call) {
    const auto slot = static_cast<int>(request.slot_of(call, static_cast<std::size_t>(slots)));
    auto again = fetch(plan, yardstick, slot);
    if (!again) return Unexpected{std::move(again).error()};
    const std::size_t set = request.set_of(call, static_cast<std::size_t>(weight_sets));
    if (auto wrong = difference(first, *again, yardstick.layer, slot, set)) return wrong;
  }
  return std::optional<std::string>();
}

}  // namespace

CheckInputs make_check_inputs(OwnedInputs pool, const Layer& layer, std::int64_t tokens,
                              std::uint64_t seed) {
  CheckInputs inputs{std::move(pool), {}};
  if (tokens > inputs.pool.tokens) {
    inputs.repeated = repeat_from_pool(inputs.pool, layer, tokens, seed);
  } else {
    inputs.repeated.inputs = inputs.pool;
    inputs.repeated.index.resize(static_cast<std::size_t>(tokens));
    std::iota(inputs.repeated.index.begin(), inputs.repeated.index.end(), 0);
  }
  return inputs;
}

CheckInputs make_check_inputs(const Layer& layer, Distribution distribution, const RoutingLaw& law,
                              std::int64_t tokens, std::uint64_t seed, const Scheme* scheme) {
  constexpr std::uint64_t pool_stream = 0;
  return make_check_inputs(generate_inputs(layer, distribution, law, std::min(tokens, kPoolRows),
                                           seed, pool_stream, scheme),
                           layer, tokens, seed);
}

ErrorReport measure_errors(const Layer& layer, std::span<const std::uint16_t> y, const Truth& truth,
                           std::span<const std::int32_t> pool_index) {
  const auto rows = static_cast<std::int64_t>(pool_index.size());
  const std::int64_t cols = layer.hidden_size;
  const std::vector<double> output = decode(layer.dtype, y);
  // The same rows weigh in all three, so that total <= 1.03 quantization compares like with like.
  const std::vector<double> emulated =
      expand(truth.emulated, pool_index, static_cast<std::size_t>(cols));
  const auto against = [&](const std::vector<double>& a, const std::vector<double>& b) {
    return measure_error(a, b, truth.magnitude, rows, cols, pool_index, layer.dtype,
                         truth.not_compared);
  };
  return {.implementation = against(output, truth.emulated),
          .quantization = against(emulated, truth.unquantized),
          .total = against(output, truth.unquantized),
          .quantization_of = "weights and activations before quantisation"};
}

std::optional<std::string> broken_limits(const ErrorReport& error, const ErrorLimits& limits) {
  std::vector<std::string> broken;
  const auto require = [&broken](const char* name, double value, double limit) {
    if (!(value <= limit)) broken.push_back(exceeds(name, value, limit));
  };
  const ErrorMetrics& implementation = error.implementation;
  if (implementation.non_finite > 0) {
    broken.push_back(std::to_string(implementation.non_finite) +
                     " outputs are not finite where the truth is");
  }
  require("error.implementation.relative_l2", implementation.relative_l2, limits.relative_l2);
  require("error.implementation.worst_token", implementation.worst_token, limits.worst_token);
  if (const auto most = limits.total(error.quantization.relative_l2)) {
    require("error.total.relative_l2", error.total.relative_l2, *most);
  }
  if (broken.empty()) return std::nullopt;
  std::string reason = broken.front();
  for (std::size_t i = 1; i < broken.size(); ++i) reason += "; " + broken[i];
  return reason;
}

Expected<CheckOutcome, Fault> check_plan(Plan& plan, const Yardstick& yardstick,
                                         const RunRequest& request, std::int64_t weight_sets) {
  const OwnedInputs& rows = yardstick.inputs.repeated.inputs;
  if (auto fault = set_all_inputs(plan, other_inputs(rows))) return Unexpected{std::move(*fault)};
  RunRequest some = request;
  some.calls = 1;
  if (auto seconds = plan.run(some); !seconds) return Unexpected{std::move(seconds).error()};
  if (auto fault = set_all_inputs(plan, rows)) return Unexpected{std::move(*fault)};

  auto judged = judge_one_call(plan, yardstick, request);
  if (!judged) return Unexpected{std::move(judged).error()};
  CheckOutcome outcome = std::move(judged->outcome);
  if (outcome.not_comparable) return outcome;
  const auto repeats = [&](const RunRequest& again) -> std::optional<Fault> {
    auto wrong = repeat(plan, yardstick, again, weight_sets, judged->y);
    if (!wrong) return std::move(wrong).error();
    outcome.wrong = std::move(*wrong);
    return std::nullopt;
  };
  // As many sets at a time as there are slots to tell their outputs apart. What is in the cache
  // makes no difference to them, and to empty it before each of a thousand calls takes minutes.
  if (some.cache == Cache::cold) some.cache = Cache::cold_weights;
  const std::int64_t turn = request.cache == Cache::hot ? 1 : plan.slots();
  for (std::int64_t set = 0; set < weight_sets && !outcome.wrong; set += turn) {
    some.first_set = set;
    some.calls = std::min(turn, weight_sets - set);
    if (auto fault = repeats(some)) return Unexpected{std::move(*fault)};
  }
  if (!outcome.wrong) {
    if (auto fault = repeats(request)) return Unexpected{std::move(*fault)};
  }
  outcome.output = std::move(judged->y);
  return outcome;
}

Expected<CheckOutcome, Fault> check_replay(Plan& plan, const Yardstick& yardstick,
                                           const RunRequest& request) {
  if (auto fault = plan.set_inputs(0, yardstick.inputs.repeated.inputs.view())) {
    return Unexpected{std::move(*fault)};
  }
  auto judged = judge_one_call(plan, yardstick, request);
  if (!judged) return Unexpected{std::move(judged).error()};
  return std::move(judged->outcome);
}

Expected<std::optional<std::string>, Fault> non_finite_output(Plan& plan, const Layer& layer,
                                                              std::int64_t tokens) {
  // All exponent bits set: infinity or NaN.
  const std::uint16_t exponent = layer.dtype == Dtype::bf16 ? 0x7F80 : 0x7C00;
  for (int slot = 0; slot < plan.slots(); ++slot) {
    auto y = fetch(plan, layer, tokens, slot);
    if (!y) return Unexpected{std::move(y).error()};
    const auto bad = std::ranges::find_if(
        *y, [exponent](std::uint16_t bits) { return (bits & exponent) == exponent; });
    if (bad == y->end()) continue;
    const std::int64_t at = bad - y->begin();
    return std::optional<std::string>("timed output " + element(at, layer, slot) +
                                      " is not finite");
  }
  return std::optional<std::string>();
}

}  // namespace moegauge
