// Which row of a meets which expert's matrix, in each of the layouts of ops/grouped_gemm.cc, and
// rows drawn for them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/ops/alignment.h"
#include "reference/ops/op.h"

namespace moegauge {

struct GroupedShape {
  Role role;
  std::int64_t experts, rows, columns, contracted;  // rows: of a
};
GroupedShape grouped_shape(const OpProblem& problem);

// Op::infer.
void infer_grouped_gemm(const GivenTensors& given, OpProblem& problem);

// Row `output` of the result is row `source` of a times an expert's matrix.
struct RowUse {
  std::int32_t output, source, expert;
};
// Throws InputError where the inputs contradict themselves.
std::vector<RowUse> row_uses(const OpProblem& problem, std::span<const Tensor> inputs);

// What tokens (gate_up) or pairs (down) give, before any quantisation, and which experts they go
// to.
struct DrawnRows {
  std::vector<float> a;
  std::vector<std::int32_t> topk_ids;
};
DrawnRows draw_grouped_rows(const OpProblem& problem, const OpDraw& draw);
// a before quantisation [rows, contracted]: the drawn rows where the layout has them, zeros
// elsewhere.
std::vector<float> laid_out(const OpProblem& problem, const DrawnRows& drawn);
// Fills in the inputs that say where rows are.
void place_rows(const OpProblem& problem, std::span<const std::int32_t> topk_ids,
                std::vector<Tensor>& inputs);

}  // namespace moegauge
