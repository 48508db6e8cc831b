#include <algorithm>
#include <array>

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
                     " (" + factor + "limit " + format_ratio(rule.growth_limit) +
                     "): find the change that lost accuracy, or record a new baseline on purpose"};
}

}  // namespace

std::vector<Finding> judge_error(const CheckResult& check, const ErrorRule& rule,
                                 const TotalRule& total, const ErrorLimits& shipped) {
  const ErrorReport& error = check.error;
  std::vector<Finding> findings;
  if (auto finding = not_finite(error)) findings.push_back(*finding);

  const double l2 = rule.relative_l2.value_or(shipped.relative_l2);
  if (exceeds(error.implementation.relative_l2, l2)) {
    findings.push_back(too_large("error.implementation.relative_l2",
                                 error.implementation.relative_l2,
                                 "the limit " + format_error(l2)));
  }
  const double worst = rule.worst_token.value_or(shipped.worst_token);
  if (exceeds(error.implementation.worst_token, worst)) {
    findings.push_back(too_large("error.implementation.worst_token",
                                 error.implementation.worst_token,
                                 "the limit " + format_error(worst) + " (token " +
                                     std::to_string(error.implementation.worst_token_row) + ")"));
  }
  const double format_cost = error.quantization.relative_l2;
  if (format_cost > total.applies_above &&
      exceeds(error.total.relative_l2, total.limit * format_cost)) {
    findings.push_back(too_large("error.total.relative_l2", error.total.relative_l2,
                                 format_ratio(total.limit) + " the " + format_error(format_cost) +
                                     " that the format itself costs"));
  }
  return findings;
}

std::vector<Finding> judge_error_growth(const CheckResult& check, const CheckResult& baseline,
                                        const ErrorRule& rule) {
  const ErrorReport& now = check.error;
  const ErrorReport& then = baseline.error;
  struct Series {
    const char* subject;
    double now, then;
  };
  const std::array<Series, 4> series = {{
      {"error.implementation.relative_l2", now.implementation.relative_l2,
       then.implementation.relative_l2},
      {"error.implementation.worst_token", now.implementation.worst_token,
       then.implementation.worst_token},
      {"error.total.relative_l2", now.total.relative_l2, then.total.relative_l2},
      {"error.total.worst_token", now.total.worst_token, then.total.worst_token},
  }};
  std::vector<Finding> findings;
  for (const Series& s : series) {
    if (auto finding = growth(s.subject, s.now, s.then, rule)) findings.push_back(*finding);
  }
  return findings;
}

}  // namespace moegauge
