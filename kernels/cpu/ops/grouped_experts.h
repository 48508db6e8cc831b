// The weights of a grouped GEMM, packed as those of a layer's second GEMM are: its columns are not
// paired.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/buffer.h"
#include "kernels/cpu/layer_kernel.h"
#include "kernels/cpu/ops/cpu_op.h"
#include "kernels/cpu/packed_weights.h"

namespace moegauge::cpu {

std::int64_t contracted_of(const OpProblem& problem);
std::int64_t columns_of(const OpProblem& problem);
Recipe recipe_of(const OpProblem& problem);
// For sizing tasks, which looks at the columns of a layer's first GEMM.
Layer for_tasks(const OpProblem& problem);

class PackedExperts final : public OpWeights {
 public:
  PackedExperts(const OpProblem& p, std::span<const Tensor> weights, int sets,
                const OpContext& context);

  const MatrixLayout& layout() const { return layout_; }
  const std::byte* expert(int set, std::int64_t e) const {
    return sets_[static_cast<std::size_t>(set)].data() + e * layout_.bytes();
  }

 private:
  ConstMatrix matrix(std::span<const Tensor> weights, std::int64_t experts, std::int64_t e) const;

  MatrixLayout layout_;
  std::vector<Array<std::byte>> sets_;
};

}  // namespace moegauge::cpu
