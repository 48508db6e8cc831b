// Where a kernel rounds. Every kernel declares this; the oracle's `emulated` result rounds in
// exactly these places, so that what remains is what the kernel adds by itself.
#pragma once

#include <cstdint>

namespace moegauge {

enum class Precision : std::uint8_t { fp32, activation_dtype };

enum class WeightOnInput : std::uint8_t {
  gemm1,  // the router weight multiplies the first GEMM's output, before the activation
  x,      // it multiplies x, rounded to the activation dtype, before quantisation
};

enum class Accumulate : std::uint8_t {
  fp32,
  reduced,  // e.g. Hopper's FP8 tensor cores without promotion, about 14 bits
};

struct Numerics {
  Precision gemm1_out = Precision::fp32;  // gate and up, before the activation
  Precision act_out =
      Precision::fp32;  // the activation's output, before the second GEMM's quantisation
  Precision pair_out =
      Precision::fp32;  // weighted output of one (token, expert) pair before the sum
  WeightOnInput weight_on_input = WeightOnInput::gemm1;
  Accumulate accumulate = Accumulate::fp32;
  // Of dequantised weights before they are multiplied: activation_dtype where a kernel turns them
  // into a matrix of it for another's GEMM.
  Precision weights = Precision::fp32;
  // The second GEMM's output before bias and router weight, where kernels of their own add and
  // multiply those: of a library, whose GEMM ends with a rounding.
  Precision gemm2_out = Precision::fp32;

  friend bool operator==(const Numerics&, const Numerics&) = default;
};

}  // namespace moegauge
