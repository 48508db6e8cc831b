#include "harness/judge/numbers.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace moegauge {
namespace {

std::string formatted(const char* format, double value) {
  std::array<char, 400> text{};  // the largest double has 309 digits
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

}  // namespace

std::string format_us(double us) {
  // %g would write 12345.6 as 1.235e+04.
  const int digits_before_point = us >= 1 ? static_cast<int>(std::log10(us)) + 1 : 1;
  const int decimals = digits_before_point >= 4 ? 0 : 4 - digits_before_point;
  std::array<char, 400> text{};  // the largest double has 309 digits
  std::snprintf(text.data(), text.size(), "%.*f us", decimals, us);
  return text.data();
}

std::string format_us(std::optional<double> us) { return us ? format_us(*us) : "-"; }

std::string format_ratio(double ratio) { return formatted("%.3fx", ratio); }

std::string format_interval(double low, double high) {
  return "[" + formatted("%.3f", low) + ", " + formatted("%.3f", high) + "]";
}

std::string format_percent(double fraction) { return formatted("%.2f%%", 100 * fraction); }

std::string format_change(double fraction) {
  return formatted(std::abs(fraction) < 0.01 ? "%+.2f%%" : "%+.1f%%", 100 * fraction);
}

std::string format_points(double fraction) { return formatted("%+.2f%%", 100 * fraction); }

std::string format_plain(double number) { return formatted("%.10g", number); }

std::string format_error(double error) {
  if (std::isnan(error)) return "not a number";
  return std::isfinite(error) ? formatted("%.3g", error) : "infinite";
}

}  // namespace moegauge
