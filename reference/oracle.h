// The truth, in fp64 (Eigen): what a perfect kernel would return.
//
// emulated:    same quantised operands, scales and declared rounding points as the kernel, exact
//              arithmetic in between, y rounded once to layer.dtype.
// unquantized: the weights and activations before quantisation, no rounding at all.
// magnitude:   sum over pairs and n of |weight * h_n * w2_kn|, the scale against which cancellation
//              is judged (max_scaled, reference/error.h).
//
// Only the experts that the inputs route to are ever asked of the source, one at a time per thread.
#pragma once

#include <vector>

#include "reference/layer.h"
#include "reference/numerics.h"
#include "reference/schemes/scheme.h"

namespace moegauge {

struct Truth {
  std::int64_t tokens = 0;  // M; the three are row-major [M, K]
  std::int64_t hidden_size = 0;
  std::vector<double> emulated, unquantized, magnitude;
};

// `threads` > 0. Same bits for any number of threads.
Truth compute_truth(const Layer& layer, const Scheme& scheme, const Numerics& numerics,
                    const ExpertSource& experts, const LayerInputs& inputs, int threads);

}  // namespace moegauge
