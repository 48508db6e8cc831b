#include "harness/commands/duration.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <system_error>

#include "reference/base/input_error.h"

namespace moegauge {
namespace {

[[noreturn]] void refuse(const std::string& text, const std::string& option) {
  throw InputError(option, "\"" + text + "\" is no duration", "e.g. 90s, 20m or 1h30m");
}

double unit_seconds(char unit) {
  return unit == 'h' ? 3600 : unit == 'm' ? 60 : unit == 's' ? 1 : 0;
}

}  // namespace

double parse_duration(const std::string& text, const std::string& option) {
  double total = 0, last_unit = 1e9;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    double value = 0;
    const auto [after, error] = std::from_chars(at, end, value, std::chars_format::fixed);
    if (error != std::errc() || !(value >= 0)) refuse(text, option);
    // A bare number is seconds, and only the last part may be bare.
    const double unit = after == end ? 1 : unit_seconds(*after);
    if (unit == 0 || unit >= last_unit) refuse(text, option);
    total += value * unit;
    last_unit = unit;
    at = after == end ? end : after + 1;
  }
  if (!(total > 0) || !std::isfinite(total)) refuse(text, option);
  return total;
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<long long>(std::llround(std::max(0.0, seconds)));
  char text[48];
  if (whole >= 3600) {
    std::snprintf(text, sizeof text, "%lldh%02lldm", whole / 3600, whole / 60 % 60);
  } else if (whole >= 60) {
    std::snprintf(text, sizeof text, "%lldm%02llds", whole / 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%llds", whole);
  }
  return text;
}

}  // namespace moegauge
