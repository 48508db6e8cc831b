// The op seam of the reference: one file per op defines an Op and is named once in the list of
// CMakeLists.txt; nothing else compares ops by name. An op says which tensors it takes and gives,
// draws inputs, computes the truth of exactly those inputs and judges what a kernel returned.
//
// Kernels see OpProblem (reference/op_problem.h) and never this: no kernel is tested against its
// own helper functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/error.h"
#include "reference/inputs.h"
#include "reference/op_problem.h"
#include "reference/ops/given.h"

namespace moegauge {

// A suite field of one op: one of `words`, or where there are none a number in [low, high].
struct OpField {
  std::string name = {};
  std::vector<std::string> words = {};
  std::int64_t low = 0, high = 0;
  OpValue fallback = {};  // where a suite does not say
};

// Which values to draw; `stream` tells independent draws of one seed apart.
struct OpDraw {
  Distribution distribution = Distribution::gaussian;
  RoutingLaw law = {};
  std::uint64_t seed = 0, stream = 0;
  int unit_spread = 0;  // of generated_experts (reference/inputs.h)
  // 0, or the number of distinct tokens: the others repeat them, so that the truth of 8192 rows
  // costs that of 256.
  std::int64_t pool = 0;
};

// What one call must move and compute at least. Rows beyond those that the inputs ask for cost
// nothing.
struct OpWork {
  double weight_bytes = 0;   // of the weights that the inputs touch
  double operand_bytes = 0;  // inputs and outputs, once each
  double flops = 0;          // of dot products, 2 per multiply-add
};

// The three distances of docs/method.md, and why the outputs are wrong, where they are. Where a
// tensor holds ids, codes or counts, its distance is the share of wrong entries.
struct OpErrors {
  ErrorMetrics implementation = {}, quantization = {}, total = {};
  std::string quantization_of = {};
  std::optional<std::string> wrong = {};
};

// The right answer to one set of inputs.
class OpTruth {
 public:
  virtual ~OpTruth() = default;
  // `outputs` as problem.outputs says, in that order.
  virtual OpErrors judge(std::span<const Tensor> outputs) const = 0;
  // The answer itself, for dumps: `emulated`, `unquantized`, or `emulated_NAME` of each output.
  virtual std::vector<Tensor> answers() const = 0;
};

class Op {
 public:
  virtual ~Op() = default;
  virtual std::string_view name() const = 0;
  virtual std::vector<OpField> fields() const { return {}; }
  // Whether inputs of the class `exact` make every correct kernel return the same bits.
  virtual bool has_exact_inputs() const { return false; }
  // Whether OpDraw::pool is heeded.
  virtual bool repeats_tokens() const { return false; }
  // Whether a right kernel may return other bits on another run (an order left open).
  virtual bool order_is_open() const { return false; }

  // Fills in problem's weights, inputs and outputs; or why the op is not defined for it, one
  // sentence.
  virtual std::optional<std::string> describe(OpProblem& problem) const = 0;

  // Where a layer is what its tensors say: puts what they say into problem.layer's sizes and into
  // problem.tokens, which are 0 or what the case says; of fields at their fallback it may choose
  // those that the tensors need. A size that is read and not known stays 0, one that never is read
  // becomes 1.
  virtual void infer(const GivenTensors& given, OpProblem& problem) const = 0;

  // Of a described problem.
  virtual std::vector<Tensor> draw_weights(const OpProblem&, const OpDraw&) const { return {}; }
  virtual std::vector<Tensor> draw_inputs(const OpProblem& problem, const OpDraw& draw) const = 0;
  // The inputs where some are given: the others drawn, so that they fit.
  virtual std::vector<Tensor> draw_beside(const OpProblem& problem, const OpDraw& draw,
                                          std::vector<Tensor> given) const;
  // Throws InputError where the inputs contradict themselves (an id out of range), as truth() does.
  virtual void check(const OpProblem&, std::span<const Tensor>) const {}
  virtual OpWork work(const OpProblem& problem, std::span<const Tensor> inputs) const = 0;
  // The truth of these tensors, wherever they come from. `drawn`: how they were drawn, so that what
  // stood before a quantisation can be made again; nullptr where nobody knows. Throws InputError as
  // check() does.
  virtual std::unique_ptr<const OpTruth> truth(const OpProblem& problem,
                                               std::span<const Tensor> weights,
                                               std::span<const Tensor> inputs, const OpDraw* drawn,
                                               int threads) const = 0;
  // An output that is NaN or infinite though finite inputs cannot make it so: "output[3]". For runs
  // whose truth is not known.
  virtual std::optional<std::string> not_finite(const OpProblem& problem,
                                                std::span<const Tensor> inputs,
                                                std::span<const Tensor> outputs) const;
};

// In the order in which suites and help texts name them.
std::span<const Op* const> all_ops();
// nullptr where there is none.
const Op* find_op(std::string_view name);

}  // namespace moegauge
