#include "reference/random/portable_math.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

namespace moegauge {
namespace {

// ln 2 in two parts: the first has trailing zeros, so that small multiples of it are exact.
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

double polynomial(double x, const std::array<double, 8>& c) {
  double y = c[7];
  for (std::size_t i = 7; i-- > 0;) y = y * x + c[i];
  return y;
}

}  // namespace

double portable_log(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<std::int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000F'FFFF'FFFF'FFFFull) | 0x3FF0'0000'0000'0000ull);
  if (m > 1.4142135623730951) {
    m /= 2;
    ++exponent;
  }
  // ln m = 2 artanh(t), t = (m - 1)/(m + 1), |t| < 0.1716: t^2 < 0.0295, and 12 terms reach 1e-19.
  const double t = (m - 1) / (m + 1), t2 = t * t;
  double sum = 0;
  for (int k = 23; k >= 3; k -= 2) sum = (sum + 1.0 / k) * t2;
  const auto e = static_cast<double>(exponent);
  return e * kLn2High + (2 * t + (2 * t * sum + e * kLn2Low));
}

double portable_exp(double x) {
  if (x > 709) return std::numeric_limits<double>::infinity();
  if (!(x > -708)) return 0;
  const double n = std::floor(x / (kLn2High + kLn2Low) + 0.5);
  const double r = (x - n * kLn2High) - n * kLn2Low;  // |r| < 0.347
  double sum = 1;
  for (int k = 16; k >= 1; --k) sum = 1 + sum * r / k;
  const auto scale = static_cast<std::uint64_t>(static_cast<std::int64_t>(n) + 1023) << 52;
  return sum * std::bit_cast<double>(scale);
}

double normal_quantile(double p) {
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    constexpr std::array<double, 8> a = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                                         1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                         4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                         3.3430575583588128105e+4, 2.5090809287301226727e+3};
    constexpr std::array<double, 8> b = {1.0,
                                         4.2313330701600911252e+1,
                                         6.8718700749205790830e+2,
                                         5.3941960214247511077e+3,
                                         2.1213794301586595867e+4,
                                         3.9307895800092710610e+4,
                                         2.8729085735721942674e+4,
                                         5.2264952788528545610e+3};
    const double r = 0.180625 - q * q;
    return q * polynomial(r, a) / polynomial(r, b);
  }
  double r = std::sqrt(-portable_log(q < 0 ? p : 1 - p));
  double value = 0;
  if (r <= 5) {
    constexpr std::array<double, 8> c = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                         5.76949722146069140550e0,  3.64784832476320460504e0,
                                         1.27045825245236838258e0,  2.41780725177450611770e-1,
                                         2.27238449892691845833e-2, 7.74545014278341407640e-4};
    constexpr std::array<double, 8> d = {1.0,
                                         2.05319162663775882187e0,
                                         1.67638483018380384940e0,
                                         6.89767334985100004550e-1,
                                         1.48103976427480074590e-1,
                                         1.51986665636164571966e-2,
                                         5.47593808499534494600e-4,
                                         1.05075007164441684324e-9};
    r -= 1.6;
    value = polynomial(r, c) / polynomial(r, d);
  } else {
    constexpr std::array<double, 8> e = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                         1.78482653991729133580e0,  2.96560571828504891230e-1,
                                         2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                         2.71155556874348757815e-5, 2.01033439929228813265e-7};
    constexpr std::array<double, 8> f = {1.0,
                                         5.99832206555887937690e-1,
                                         1.36929880922735805310e-1,
                                         1.48753612908506148525e-2,
                                         7.86869131145613259100e-4,
                                         1.84631831751005468180e-5,
                                         1.42151175831644588870e-7,
                                         2.04426310338993978564e-15};
    r -= 5;
    value = polynomial(r, e) / polynomial(r, f);
  }
  return q < 0 ? -value : value;
}

}  // namespace moegauge
