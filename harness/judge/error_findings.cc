#include <array>
#include <cstddef>

#include "harness/judge/findings.h"
#include "harness/judge/numbers.h"

namespace moegauge {
namespace {

Finding too_large(const std::string& subject, double error, const std::string& limit) {
  return {Verdict::fail, subject,
          subject + " is " + format_error(error) + ", over " + limit + ": correct the kernel"};
}

// Written so that a NaN exceeds every limit.
bool exceeds(double error, double limit) { return !(error <= limit); }

std::optional<Finding> not_finite(const ErrorReport& error) {
  const ErrorMetrics& m =
      error.total.non_finite > error.implementation.non_finite ? error.total : error.implementation;
  if (m.non_finite == 0) return std::nullopt;
  std::string sentence =
      std::to_string(m.non_finite) + " outputs are NaN or infinite where the truth is finite";
  if (m.first_bad) sentence += ", the first at flat index " + std::to_string(*m.first_bad);
  return Finding{Verdict::fail, "error.non_finite", sentence + ": correct the kernel"};
}

std::optional<Finding> growth(const std::string& subject, double error, double baseline,
                              const ErrorRule& rule) {
  if (!exceeds(error, baseline + rule.growth_floor)) return std::nullopt;
  if (!exceeds(error, baseline * rule.growth_limit)) return std::nullopt;
  const std::string factor = baseline > 0 ? format_ratio(error / baseline) + ", " : "";
  return Finding{Verdict::fail, subject,
                 subject + " grew from " + format_error(baseline) + " to " + format_error(error) +
                     " (" + factor + "limit " + format_ratio(rule.growth_limit) + ")",
                 "find the change that lost accuracy, or record a new baseline on purpose"};
}

// Every error that may not grow, by its name in the record.
struct Series {
  const char* name;
  double (*of)(const ErrorReport& error);
};
constexpr std::array<Series, 4> series = {{
    {"error.implementation.relative_l2",
     [](const ErrorReport& e) { return e.implementation.relative_l2; }},
    {"error.implementation.worst_token",
     [](const ErrorReport& e) { return e.implementation.worst_token; }},
    {"error.total.relative_l2", [](const ErrorReport& e) { return e.total.relative_l2; }},
    {"error.total.worst_token", [](const ErrorReport& e) { return e.total.worst_token; }},
}};

}  // namespace

ErrorLimits limits_in_force(const ErrorRule& rule, const std::optional<TotalRule>& total,
                            const ErrorLimits& shipped) {
  ErrorLimits limits = shipped;
  limits.relative_l2 = rule.relative_l2.value_or(shipped.relative_l2);
  limits.worst_token = rule.worst_token.value_or(shipped.worst_token);
  if (total) {
    limits.total_factor = total->limit;
    limits.total_applies_above = total->applies_above;
  }
  return limits;
}

std::vector<ErrorNumber> error_numbers(const CheckResult& check, const CheckResult* baseline,
                                       const ErrorLimits& limits) {
  std::vector<ErrorNumber> numbers;
  const auto add = [&](const char* name, double (*of)(const ErrorReport&),
                       std::optional<double> limit) {
    numbers.push_back({.name = name,
                       .value = of(check.error),
                       .limit = limit,
                       .baseline = baseline ? std::optional(of(baseline->error)) : std::nullopt});
  };
  const std::array<std::optional<double>, series.size()> held_to = {
      limits.relative_l2, limits.worst_token, limits.total(check.error.quantization.relative_l2),
      std::nullopt};
  for (std::size_t i = 0; i < series.size(); ++i) add(series[i].name, series[i].of, held_to[i]);
  add(
      "error.quantization.relative_l2",
      [](const ErrorReport& e) { return e.quantization.relative_l2; }, std::nullopt);
  return numbers;
}

std::vector<Finding> judge_error(const CheckResult& check, const ErrorLimits& limits) {
  const ErrorReport& error = check.error;
  std::vector<Finding> findings;
  if (auto finding = not_finite(error)) findings.push_back(*finding);

  if (exceeds(error.implementation.relative_l2, limits.relative_l2)) {
    findings.push_back(too_large("error.implementation.relative_l2",
                                 error.implementation.relative_l2,
                                 "the limit " + format_error(limits.relative_l2)));
  }
  if (exceeds(error.implementation.worst_token, limits.worst_token)) {
    findings.push_back(too_large("error.implementation.worst_token",
                                 error.implementation.worst_token,
                                 "the limit " + format_error(limits.worst_token) + " (token " +
                                     std::to_string(error.implementation.worst_token_row) + ")"));
  }
  const std::optional<double> most = limits.total(error.quantization.relative_l2);
  if (most && exceeds(error.total.relative_l2, *most)) {
    findings.push_back(too_large("error.total.relative_l2", error.total.relative_l2,
                                 format_ratio(limits.total_factor) + " the " +
                                     format_error(error.quantization.relative_l2) +
                                     " that the format itself costs"));
  }
  return findings;
}

std::vector<Finding> judge_error_growth(const CheckResult& check, const CheckResult& baseline,
                                        const ErrorRule& rule) {
  std::vector<Finding> findings;
  for (const Series& s : series) {
    if (auto finding = growth(s.name, s.of(check.error), s.of(baseline.error), rule)) {
      findings.push_back(*finding);
    }
  }
  return findings;
}

}  // namespace moegauge
