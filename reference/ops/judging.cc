#include "reference/ops/judging.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "reference/dtype.h"

namespace moegauge {
namespace {

// Rows of `from` [?, cols] in the order of `rows`.
std::vector<double> gather(std::span<const double> from, std::span<const std::int32_t> rows,
                           std::int64_t cols) {
  std::vector<double> out;
  out.reserve(rows.size() * static_cast<std::size_t>(cols));
  for (const std::int32_t row : rows) {
    const auto begin = from.begin() + row * cols;
    out.insert(out.end(), begin, begin + cols);
  }
  return out;
}

}  // namespace

ErrorMetrics EntryCount::metrics() const {
  ErrorMetrics metrics;
  const std::int64_t all = right_ + wrong_;
  if (all == 0) return metrics;
  const double share = static_cast<double>(wrong_) / static_cast<double>(all);
  metrics.relative_l2 = metrics.worst_token = share;
  metrics.matched = 1 - share;
  if (wrong_ > 0) metrics.first_bad = first_index_;
  return metrics;
}

std::optional<std::string> EntryCount::sentence() const {
  if (wrong_ == 0) return std::nullopt;
  return std::to_string(wrong_) + " of " + std::to_string(right_ + wrong_) +
         " entries are wrong; first: " + *first_;
}

OpErrors EntryCount::errors() const {
  const ErrorMetrics all = metrics();
  return {all, {}, all, "nothing is quantised", sentence()};
}

std::string entry_is(const std::string& tensor, std::int64_t index, std::int64_t found,
                     std::int64_t right) {
  return tensor + "[" + std::to_string(index) + "] is " + std::to_string(found) + ", " +
         std::to_string(right) + " is right";
}

std::optional<std::string> beyond(const ErrorMetrics& implementation, const ErrorLimits& limits) {
  std::string broken;
  const auto add = [&](const std::string& sentence) {
    broken += (broken.empty() ? "" : "; ") + sentence;
  };
  const auto require = [&](const char* name, double value, double limit) {
    if (value <= limit) return;
    char text[160];
    std::snprintf(text, sizeof text, "%s %.4g exceeds %.4g", name, value, limit);
    add(text);
  };
  if (implementation.non_finite > 0) {
    add(std::to_string(implementation.non_finite) + " outputs are not finite where the truth is");
  }
  require("error.implementation.relative_l2", implementation.relative_l2, limits.relative_l2);
  require("error.implementation.worst_token", implementation.worst_token, limits.worst_token);
  return broken.empty() ? std::nullopt : std::optional(broken);
}

OpErrors RowsTruth::judge(const Tensor& output) const {
  std::vector<std::int32_t> from, to;  // rows of the output, and of the truth
  const std::int64_t output_rows =
      truth_row.empty() ? rows : static_cast<std::int64_t>(truth_row.size());
  for (std::int32_t r = 0; r < output_rows; ++r) {
    const std::int32_t row = truth_row.empty() ? r : truth_row[static_cast<std::size_t>(r)];
    if (row < 0) continue;
    from.push_back(r);
    to.push_back(row);
  }
  const std::vector<double> a = gather(decoded(output), from, cols);
  std::vector<double> emulated = exact;
  for (double& value : emulated) value = round_to(dtype, value);
  const std::vector<double>& before = unquantized.empty() ? exact : unquantized;
  const auto compared = static_cast<std::int64_t>(from.size());
  const auto against = [&](const std::vector<double>& x, const std::vector<double>& b) {
    return measure_error(x, b, magnitude, compared, cols, to, dtype, not_compared);
  };
  OpErrors errors = {against(a, emulated), against(gather(emulated, to, cols), before),
                     against(a, before), quantization_of, std::nullopt};
  errors.wrong = beyond(errors.implementation, limits);
  return errors;
}

std::vector<Tensor> RowsTruth::answers() const {
  const std::int64_t output_rows =
      truth_row.empty() ? rows : static_cast<std::int64_t>(truth_row.size());
  const auto shape = output_shape.empty() ? std::vector{output_rows, cols} : output_shape;
  std::vector<Tensor> all;
  const auto add = [&](const char* name, const std::vector<double>& from, auto rounded) {
    Tensor& tensor = all.emplace_back(TensorSpec{name, TensorType::fp64, shape});
    poison(tensor);
    for (std::int64_t r = 0; r < output_rows; ++r) {
      const std::int64_t row = truth_row.empty() ? r : truth_row[static_cast<std::size_t>(r)];
      if (row < 0) continue;
      std::transform(from.begin() + row * cols, from.begin() + (row + 1) * cols,
                     tensor.as<double>().begin() + r * cols, rounded);
    }
  };
  add("emulated", exact, [this](double value) { return round_to(dtype, value); });
  add("unquantized", unquantized.empty() ? exact : unquantized, [](double value) { return value; });
  return all;
}

Tensor named(std::string name, const Tensor& tensor) {
  Tensor copy = tensor;
  copy.spec.name = std::move(name);
  return copy;
}

std::vector<std::uint8_t> rows_with_infinity(std::span<const double> values, std::int64_t rows) {
  std::vector<std::uint8_t> found(static_cast<std::size_t>(rows));
  if (rows == 0) return found;
  const std::size_t width = values.size() / found.size();
  for (std::size_t r = 0; r < found.size(); ++r) {
    const auto row = values.subspan(r * width, width);
    found[r] = std::ranges::any_of(row, [](double value) { return std::isinf(value); }) ? 1 : 0;
  }
  return found;
}

void ignore_sizes(std::initializer_list<std::int64_t*> sizes) {
  for (std::int64_t* size : sizes) *size = std::max<std::int64_t>(*size, 1);
}

void ignore_experts(Layer& layer) {
  ignore_sizes({&layer.top_k});
  layer.experts = std::max(layer.experts, layer.top_k);
}

std::vector<std::uint16_t> draw_rows(const OpProblem& problem, const OpDraw& draw,
                                     std::int64_t rows, std::int64_t cols) {
  const Layer one = {.experts = 1,
                     .top_k = 1,
                     .hidden_size = cols,
                     .intermediate_size = 1,
                     .dtype = problem.layer.dtype};
  return generate_inputs(one, draw.distribution, {}, rows, draw.seed, draw.stream,
                         problem.scheme.get())
      .x;
}

std::vector<float> draw_weights_of_pairs(const OpProblem& problem, const OpDraw& draw) {
  Layer narrow = problem.layer;
  narrow.hidden_size = narrow.intermediate_size = 1;
  return generate_inputs(narrow, Distribution::gaussian, draw.law, problem.tokens, draw.seed,
                         draw.stream)
      .topk_weights;
}

double bytes_of(std::span<const TensorSpec> specs) {
  std::int64_t bytes = 0;
  for (const TensorSpec& spec : specs) bytes += spec.bytes();
  return static_cast<double>(bytes);
}

}  // namespace moegauge
