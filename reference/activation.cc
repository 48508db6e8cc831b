#include "reference/activation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace moegauge {
namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// x * Phi(x) = x / 2 * (1 + erf(x / sqrt 2)), by erfc because 1 + erf cancels for negative x.
double gelu(double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }

// Hendrycks and Gimpel (2016): x / 2 * (1 + tanh(z)), z = sqrt(2 / pi) (x + 0.044715 x^3). The
// factor is a sigmoid, which does not cancel: (1 + tanh(z)) / 2 = sigmoid(2 z).
double gelu_tanh(double x) {
  const double z = std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return x * sigmoid(2.0 * z);
}

}  // namespace

double activate(const Activation& activation, double gate, double up) {
  switch (activation.kind) {
    case ActivationKind::silu_and_mul:
      return gate * sigmoid(gate) * up;
    case ActivationKind::gelu_and_mul:
      return gelu(gate) * up;
    case ActivationKind::gelu_tanh_and_mul:
      return gelu_tanh(gate) * up;
    case ActivationKind::swiglu_clamped: {
      const double g = std::min(gate, activation.limit);
      const double u = std::clamp(up, -activation.limit, activation.limit);
      return (u + activation.beta) * g * sigmoid(activation.alpha * g);
    }
  }
  return 0;
}

}  // namespace moegauge
