// What the ops of this folder share when they draw inputs and judge outputs.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "reference/ops/op.h"

namespace moegauge {

// Counts entries that must be equal, and keeps a sentence about the first that is not.
class EntryCount {
 public:
  // `sentence` is asked for on the first wrong entry only.
  template <typename Sentence>
  void expect(bool right, std::int64_t index, const Sentence& sentence) {
    right ? ++right_ : ++wrong_;
    if (right || first_) return;
    first_ = sentence();
    first_index_ = index;
  }
  std::int64_t wrong() const { return wrong_; }
  // "3 of 16 entries are wrong; first: ...", or nothing.
  std::optional<std::string> sentence() const;
  // Distances are the share of wrong entries.
  ErrorMetrics metrics() const;
  // All three distances alike: nothing is quantised here.
  OpErrors errors() const;

 private:
  std::int64_t right_ = 0, wrong_ = 0, first_index_ = 0;
  std::optional<std::string> first_;
};

// "sorted_token_ids[3] is 5, 4 is right".
std::string entry_is(const std::string& tensor, std::int64_t index, std::int64_t found,
                     std::int64_t right);

// Which limits these distances break, or nothing. Written so that a NaN breaks them.
std::optional<std::string> beyond(const ErrorMetrics& implementation, const ErrorLimits& limits);

// The truth of one matrix in the layer's dtype. `exact` [rows, cols] is rounded once for the
// emulated truth.
struct RowsTruth {
  std::int64_t rows = 0, cols = 0;
  std::vector<double> exact, magnitude;
  Dtype dtype = Dtype::bf16;
  ErrorLimits limits = {};
  // Before anything was quantised; empty: as `exact`.
  std::vector<double> unquantized = {};
  std::string quantization_of = {};
  // Row r of the output is compared with row truth_row[r], and where that is -1 with nothing;
  // empty: with its own.
  std::vector<std::int32_t> truth_row = {};
  // [rows], or empty: 1 for one that holds infinities, or is made of some, and is not compared.
  std::vector<std::uint8_t> not_compared = {};
  // Of the output; empty: [rows, cols].
  std::vector<std::int64_t> output_shape = {};

  OpErrors judge(const Tensor& output) const;
  // `emulated` and `unquantized` in fp64, rows as in the output; NaN in those that nothing is
  // compared with.
  std::vector<Tensor> answers() const;
};

// The truth of an op whose one output is such a matrix.
class MatrixTruth final : public OpTruth {
 public:
  explicit MatrixTruth(RowsTruth rows) : rows_(std::move(rows)) {}
  OpErrors judge(std::span<const Tensor> outputs) const override {
    return rows_.judge(outputs.front());
  }
  std::vector<Tensor> answers() const override { return rows_.answers(); }

 private:
  RowsTruth rows_;
};

// Bits of `rows` random rows of `cols` elements, as x of a layer is drawn (reference/inputs.h).
std::vector<std::uint16_t> draw_rows(const OpProblem& problem, const OpDraw& draw,
                                     std::int64_t rows, std::int64_t cols);
// Router weights [tokens, top_k] as a layer's are drawn.
std::vector<float> draw_weights_of_pairs(const OpProblem& problem, const OpDraw& draw);

// A copy under another name.
Tensor named(std::string name, const Tensor& tensor);
// [rows] 1 for each that holds an infinity.
std::vector<std::uint8_t> rows_with_infinity(std::span<const double> values, std::int64_t rows);

// For Op::infer: sizes that the op does not read become 1, where the case does not say.
void ignore_sizes(std::initializer_list<std::int64_t*> sizes);
// The same of experts and top_k, in their order.
void ignore_experts(Layer& layer);

// Bytes of all tensors of these specs together.
double bytes_of(std::span<const TensorSpec> specs);

}  // namespace moegauge
