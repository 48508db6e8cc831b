// Which row of a meets which expert in a grouped GEMM, and which row of the output that is, in each
// of its layouts (reference/ops/grouped_gemm.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/op_problem.h"

namespace moegauge::cpu {

class GroupedRows {
 public:
  // One row of the output: of which row of a, and where that is encoded.
  struct Row {
    std::int32_t output, source, encoded;
  };

  explicit GroupedRows(const OpProblem& problem);

  // As OpKernel::wrong.
  std::optional<std::string> wrong(std::span<const Tensor> inputs) const;
  // Reads where rows are; of inputs that are not wrong.
  void place(std::span<const Tensor> inputs);

  // Expert e's are those from begin(e) to begin(e + 1).
  std::int64_t begin(std::int64_t expert) const { return begin_[static_cast<std::size_t>(expert)]; }
  const Row& row(std::int64_t i) const { return rows_[static_cast<std::size_t>(i)]; }
  // Of each encoded row its row of a; -1: not used in this call.
  std::span<const std::int32_t> sources() const { return sources_; }

 private:
  enum class Layout : std::uint8_t { sorted, contiguous, batched };

  std::optional<std::string> wrong_counts(std::span<const std::int32_t> counts) const;
  void place_sorted(std::span<const Tensor> inputs);

  const Layout layout_;
  const bool gate_up_;
  const std::int64_t experts_, tokens_, top_k_, block_;
  std::vector<std::int64_t> begin_;  // [experts + 1]
  std::vector<Row> rows_;
  std::vector<std::int32_t> sources_;
};

}  // namespace moegauge::cpu
