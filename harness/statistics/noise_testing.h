// Noise as machines have it, for simulations: what one process's ln(median) is off by.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

namespace moegauge {

// splitmix64 (Steele, Lea and Flood 2014), and normal values in pairs by Box and Muller: not the
// library's own generator, so that a fault there cannot hide here.
class TestRandom {
 public:
  explicit TestRandom(std::uint64_t seed) : state_(seed) {}
  double uniform() {  // in (0, 1)
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (static_cast<double>((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
  }
  double normal() {
    if (spare_ready_) {
      spare_ready_ = false;
      return spare_;
    }
    const double radius = std::sqrt(-2 * std::log(uniform()));
    const double angle = 2 * std::numbers::pi * uniform();
    spare_ = radius * std::sin(angle);
    spare_ready_ = true;
    return radius * std::cos(angle);
  }
  // Student's t with 3 degrees of freedom over sqrt(3): standard deviation 1, tails as heavy as a
  // variance allows.
  double heavy() {
    const double a = normal(), b = normal(), c = normal();
    return normal() / std::sqrt(a * a + b * b + c * c);
  }

 private:
  std::uint64_t state_;
  double spare_ = 0;
  bool spare_ready_ = false;
};

enum class Noise : std::uint8_t { normal, shared, drift, bimodal, outliers, heavy_tails };
struct NoiseKind {
  Noise noise;
  const char* name;
};
inline constexpr std::array noise_kinds = {
    NoiseKind{Noise::normal, "normal"},     NoiseKind{Noise::shared, "shared"},
    NoiseKind{Noise::drift, "drift"},       NoiseKind{Noise::bimodal, "bimodal clocks"},
    NoiseKind{Noise::outliers, "outliers"}, NoiseKind{Noise::heavy_tails, "heavy tails"}};

// A machine's processes, one after the other. `spread`: the standard deviation between processes
// (of the body, where there are outliers).
class NoisyMachine {
 public:
  NoisyMachine(Noise noise, double spread, std::uint64_t seed)
      : noise_(noise), spread_(spread), random_(seed) {}

  // The next process begins: clocks settle, the machine has drifted on. `drift`: by how many
  // spreads since the last one, the same for all cases.
  void next_process(double drift) {
    drifted_ += drift * spread_;
    if (noise_ == Noise::shared) shared_ = random_.normal();
  }

  // ln(median) of one case in the current process, off its true value. Within-run noise of 0.1%.
  double deviation() {
    const double within = 0.001 * random_.normal();
    switch (noise_) {
      case Noise::normal:
        return within + spread_ * random_.normal();
      case Noise::shared:  // mostly of the process, the same for all its cases: 0.9^2 + 0.44^2 = 1
        return within + spread_ * (0.9 * shared_ + 0.44 * random_.normal());
      case Noise::drift:
        return within + drifted_ + spread_ * random_.normal();
      case Noise::bimodal:  // two clocks, each with a little noise: 0.95^2 + 0.31^2 = 1
        return within +
               spread_ * ((random_.uniform() < 0.5 ? -0.95 : 0.95) + 0.31 * random_.normal());
      case Noise::outliers: {  // one process in fifty is 5 to 30% slow
        const double far = random_.uniform() < 0.02 ? 0.05 + 0.25 * random_.uniform() : 0;
        return within + far + spread_ * random_.normal();
      }
      case Noise::heavy_tails:
        return within + spread_ * random_.heavy();
    }
    return 0;
  }

 private:
  const Noise noise_;
  const double spread_;
  TestRandom random_;
  double drifted_ = 0, shared_ = 0;
};

}  // namespace moegauge
