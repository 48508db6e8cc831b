// How numbers read in sentences and tables.
#pragma once

#include <optional>
#include <string>

namespace moegauge {

std::string format_us(double us);                      // "59.12 us": four significant digits
std::string format_us(std::optional<double> us);       // "-" for none
std::string format_ratio(double ratio);                // "1.032x"
std::string format_interval(double low, double high);  // "[0.990, 1.021]"
std::string format_percent(double fraction);           // "1.40%"
std::string format_error(double error);  // "0.0372", "1.2e-05", "infinite", "not a number"
// As people compare them: "+26.7%", and two digits below 1%: "-0.43%".
std::string format_change(double fraction);
std::string format_points(double fraction);  // "-1.24%": a difference of two shares
std::string format_plain(double number);     // as it stood in its source, up to ten digits

}  // namespace moegauge
