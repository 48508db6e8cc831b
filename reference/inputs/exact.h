// Inputs on which every correct kernel returns exactly the oracle's bits, whatever its tiles, the
// order of its sums and the places where it rounds.
//
// Pairs. Both contracted axes (K of x and w13, N of h and w2) are cut into groups that lie within
// one scale unit of either operand, and groups into pairs of neighbours (c, c'). The left operand
// is antisymmetric in every pair: x[c'] = -x[c], and h[c'] = -h[c]. A weight row that is equal in
// both places of a pair therefore cancels exactly, for every token; most pairs are like that, with
// random weights, so that the whole of the axis is read and one lost element shows. A few *live*
// pairs differ by d and contribute d * x[c]. So sums run over many terms of both signs and large
// magnitude and still end in small integers times a power of two: below 2^24 units on the way (fp32
// is exact in any order), at most 8 significant bits at the end (bf16 is exact).
//
// Kinds of pairs along K, by position p in their group, values in units of x (a power of two),
// sign(pair) fixed for all tokens:
//   p = 0   anchor    +-A, sign random by token: A = highest * 2^k of the activation format, so
//   that
//                     the dynamic scale of every group is a power of two
//   p = 1   constant  sign * 8
//   p even  gate      sign * {0, 8, 16}, random by token
//   p odd   up        {0, +-1, +-2}, random by token
// First GEMM, in units of P = x unit * w13 unit: gate rows end at 0, 8 or 16 (d = sign), up rows at
// an integer of at most 9, or +-A where the live pair is an anchor. P is chosen so that 8 P, times
// the smallest router weight that multiplies it, is at least 64: there sigmoid and Phi are 1 to the
// last bit even in fp64, so act(g) * u = g * u; and act(0) = 0.
// Rows n, n' of a pair along N have the same gate and opposite ups: h is antisymmetric. The first
// pair of each group has a constant gate and an anchor as its up, |h| = 8 A P^2 >= every other h:
// the requantisation of h is lossless, too.
// Second GEMM: w2 rows cancel but for a few live pairs. y = sum of powers of two (the router
// weights) times integers, bounded so that y fits 8 bits for any choice of experts.
//
// With expert biases the constant gates come from the bias instead of a live pair, ups and y get a
// bias of one unit of either sign, opposite for the two rows of a pair.
//
// Weight units hold highest * 2^k and lowest * 2^k at random pairs of each row, and else +-1, +-2
// weight units. Groups of fewer than 4 columns hold no weights, those of one column no x: zero
// groups are lossless as well. A K or N under 8 has no room for live pairs and is refused, as are
// activations other than silu_and_mul and gelu_and_mul (erf).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reference/inputs/rows.h"

namespace moegauge {

// An axis cut into groups and pairs.
struct PairedAxis {
  std::int64_t length = 0;
  std::int64_t group = 0;

  std::int64_t groups() const { return (length + group - 1) / group; }
  std::int64_t pairs_in(std::int64_t g) const { return std::min(group, length - g * group) / 2; }
  // Groups with room for all kinds of pairs (at least 4); the others are last.
  std::int64_t roomy_groups() const;
};

// What the formats and the layer fix; magnitudes in the units above.
struct ExactPlan {
  PairedAxis k, n;
  double anchor = 0;                    // A
  double x_unit = 0, product_unit = 0;  // P
  double w13_unit = 0, w2_unit = 0;
  double highest = 0, lowest = 0;  // weight anchors
  int spread = 0;                  // weight anchors are multiplied by 2^v, v in [0, spread]
  int inner_limit = 0;             // of |w2 h + bias| of one pair, in units of y
  bool biased = false;
  std::uint64_t seed = 0;
};
// Throws InputError where the layer or the formats leave no exact inputs.
ExactPlan plan_exact(const Layer& layer, const SchemeTraits& traits, std::uint64_t seed,
                     int unit_spread);
// The sentence that plan_exact would throw; nothing where there are exact inputs.
std::optional<std::string> no_exact_inputs(const Layer& layer, const SchemeTraits& traits);

std::unique_ptr<Rows> exact_x(const ExactPlan& plan);
// `unit` of the weights, resolved (no zeros); `cols` of the matrix.
std::unique_ptr<Rows> exact_w13(const ExactPlan& plan, const ScaleUnit& unit);
std::unique_ptr<Rows> exact_w2(const ExactPlan& plan, const ScaleUnit& unit);
// Biases of one expert, [2N] by row key (rows.h) and [K]; for a biased plan.
std::vector<float> exact_w13_bias(const ExactPlan& plan, std::uint64_t expert);
std::vector<float> exact_w2_bias(const ExactPlan& plan, std::uint64_t expert);

// Largest |h|, for static scales.
double exact_h_anchor(const Layer& layer, const ExactPlan& plan);

// Power-of-two router weights [tokens, top_k] that sum to 1, in random order; for top_k = 1 they
// are 1/2 or 1/4.
std::vector<float> exact_topk_weights(const Layer& layer, std::int64_t tokens, std::uint64_t seed,
                                      std::uint64_t stream);

}  // namespace moegauge
