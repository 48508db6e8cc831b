// The truth, in fp64 (Eigen): what a perfect kernel would return.
//
// emulated:    same quantised operands, scales and declared rounding points as the kernel, exact
//              arithmetic in between, y rounded once to layer.dtype.
// unquantized: the weights and activations before quantisation, no rounding at all.
// magnitude:   sum over pairs and n of |weight * h_n * w2_kn|, biases included, of the emulated
//              operands: the scale against which cancellation is judged (max_scaled,
//              reference/error.h).
//
// "Exact" is to fp64: sums carry about 1e-16 of their magnitude. Pairs are summed by expert, then
// by position.
//
// A token whose x holds a NaN gives NaN in its whole row, one whose x holds infinities and no NaN
// gives infinity there and is not compared; with no expert of this rank both give zeros
// like any other token. No other token is touched.
//
// Only the experts that the inputs route to are ever asked of the source, some at a time in
// canonical storage, and in full precision never more than a block of rows per thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/layer.h"
#include "reference/numerics.h"
#include "reference/schemes/scheme.h"

namespace moegauge {

struct Truth {
  std::int64_t tokens = 0;  // M; the three are row-major [M, K]
  std::int64_t hidden_size = 0;
  std::vector<double> emulated, unquantized, magnitude;
  // [M] 1 for a token whose x holds infinities and no NaN. Any other infinity is an overflow of
  // layer.dtype at a declared rounding point, which a kernel must have too.
  std::vector<std::uint8_t> not_compared = {};
};

// Why no kernel may serve this layer in this scheme, one sentence; none if it is legal.
std::optional<std::string> illegal(const Layer& layer, const Scheme& scheme);

// `threads` > 0. Same bits for any number of threads. Throws InputError if the layer is illegal or
// the inputs do not fit it.
Truth compute_truth(const Layer& layer, const Scheme& scheme, const Numerics& numerics,
                    const ExpertSource& experts, const LayerInputs& inputs, int threads);

}  // namespace moegauge
