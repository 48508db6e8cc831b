#include "harness/measure/check.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include "reference/formats/bf16.h"
#include "reference/formats/fp16.h"

namespace moegauge {
namespace {

// total <= kTotalSlack * quantization: what the kernel adds must drown in what the format costs.
constexpr double kTotalSlack = 1.03;
constexpr double kQuantizationMatters = 0.01;

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

// Nothing, or the fault.
std::optional<Fault> poisoned_run(Plan& plan, const RunRequest& request) {
  if (auto fault = plan.poison()) return fault;
  auto seconds = plan.run(request);
  if (!seconds) return std::move(seconds).error();
  return std::nullopt;
}

CheckOutcome judge(const Layer& layer, const Output& y, const CheckInputs& inputs,
                   const Truth& truth, const ErrorLimits& limits) {
  CheckOutcome outcome{measure_errors(layer, y, truth, inputs.repeated.index), std::nullopt};
  outcome.wrong = broken_limits(outcome.error, limits);
  return outcome;
}

std::optional<std::string> difference(const Output& first, const Output& again, std::int64_t cols,
                                      int slot) {
  if (first == again) return std::nullopt;
  const auto at = std::ranges::mismatch(first, again).in1 - first.begin();
  std::int64_t differing = 0;
  for (std::size_t i = 0; i < first.size(); ++i) differing += first[i] != again[i];
  return "not deterministic: two runs of the same rows differ in " + std::to_string(differing) +
         " of " + std::to_string(first.size()) + " elements, first y[" + std::to_string(at / cols) +
         ", " + std::to_string(at % cols) + "] of slot " + std::to_string(slot);
}

}  // namespace

CheckInputs make_check_inputs(const Layer& layer, Distribution distribution, const RoutingLaw& law,
                              std::int64_t tokens, std::uint64_t seed, const Scheme* scheme) {
  constexpr std::uint64_t pool_stream = 0;
  CheckInputs inputs{generate_inputs(layer, distribution, law, std::min(tokens, kPoolRows), seed,
                                     pool_stream, scheme),
                     {}};
  if (tokens > kPoolRows) {
    inputs.repeated = repeat_from_pool(inputs.pool, layer, tokens, seed);
  } else {
    inputs.repeated.inputs = inputs.pool;
    inputs.repeated.index.resize(static_cast<std::size_t>(tokens));
    std::iota(inputs.repeated.index.begin(), inputs.repeated.index.end(), 0);
  }
  return inputs;
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
    return measure_error(a, b, truth.magnitude, rows, cols, pool_index, layer.dtype);
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
  if (error.quantization.relative_l2 > kQuantizationMatters) {
    require("error.total.relative_l2", error.total.relative_l2,
            kTotalSlack * error.quantization.relative_l2);
  }
  if (broken.empty()) return std::nullopt;
  std::string reason = broken.front();
  for (std::size_t i = 1; i < broken.size(); ++i) reason += "; " + broken[i];
  return reason;
}

Expected<CheckOutcome, Fault> check_plan(Plan& plan, const Layer& layer, const CheckInputs& inputs,
                                         const Truth& truth, const ErrorLimits& limits,
                                         const RunRequest& request) {
  const LayerInputs rows = inputs.repeated.inputs.view();
  for (int slot = 0; slot < plan.slots(); ++slot) {
    if (auto fault = plan.set_inputs(slot, rows)) return Unexpected{std::move(*fault)};
  }
  RunRequest once = request;
  once.calls = 1;
  if (auto fault = poisoned_run(plan, once)) return Unexpected{std::move(*fault)};
  auto first = fetch(plan, layer, rows.tokens, 0);
  if (!first) return Unexpected{std::move(first).error()};
  CheckOutcome outcome = judge(layer, *first, inputs, truth, limits);
  if (outcome.wrong) return outcome;

  if (auto fault = poisoned_run(plan, request)) return Unexpected{std::move(*fault)};
  const auto slots_run = std::min<std::int64_t>(plan.slots(), request.calls);
  for (int slot = 0; slot < slots_run && !outcome.wrong; ++slot) {
    auto again = fetch(plan, layer, rows.tokens, slot);
    if (!again) return Unexpected{std::move(again).error()};
    outcome.wrong = difference(*first, *again, layer.hidden_size, slot);
  }
  return outcome;
}

Expected<CheckOutcome, Fault> check_replay(Plan& plan, const Layer& layer,
                                           const CheckInputs& inputs, const Truth& truth,
                                           const ErrorLimits& limits, const RunRequest& request) {
  const LayerInputs rows = inputs.repeated.inputs.view();
  if (auto fault = plan.set_inputs(0, rows)) return Unexpected{std::move(*fault)};
  RunRequest once = request;
  once.calls = 1;
  if (auto fault = poisoned_run(plan, once)) return Unexpected{std::move(*fault)};
  auto y = fetch(plan, layer, rows.tokens, 0);
  if (!y) return Unexpected{std::move(y).error()};
  return judge(layer, *y, inputs, truth, limits);
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
    return std::optional<std::string>("timed output y[" + std::to_string(at / layer.hidden_size) +
                                      ", " + std::to_string(at % layer.hidden_size) + "] of slot " +
                                      std::to_string(slot) + " is not finite");
  }
  return std::optional<std::string>();
}

}  // namespace moegauge
