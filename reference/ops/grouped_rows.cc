#include "reference/ops/grouped_rows.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "reference/base/input_error.h"
#include "reference/dtype.h"

namespace moegauge {
namespace {

bool is(const OpProblem& p, const char* field, const char* word) { return p.word(field) == word; }

std::vector<RowUse> sorted_uses(const OpProblem& p, std::span<const Tensor> inputs) {
  const auto sorted = tensor_named(inputs, "sorted_token_ids").as<std::int32_t>();
  const auto experts = tensor_named(inputs, "expert_ids").as<std::int32_t>();
  const std::int64_t block = p.number("block_size"), pairs = p.tokens * p.layer.top_k;
  const std::int64_t end = tensor_named(inputs, "num_tokens_post_padded").as<std::int32_t>()[0];
  if (end < 0 || end > std::ssize(sorted) || end % block != 0) {
    throw InputError(
        "num_tokens_post_padded", std::to_string(end) + " entries",
        "whole blocks of " + std::to_string(block) + ", at most " + std::to_string(sorted.size()));
  }
  const bool gate_up = is(p, "gemm", "gate_up");
  std::vector<RowUse> uses;
  for (std::int64_t i = 0; i < end; ++i) {
    const std::int32_t pair = sorted[static_cast<std::size_t>(i)];
    const std::int32_t expert = experts[static_cast<std::size_t>(i / block)];
    if (pair < 0 || pair > pairs || expert >= p.layer.local_experts()) {
      throw InputError("sorted_token_ids",
                       "pair " + std::to_string(pair) + " of expert " + std::to_string(expert),
                       "pairs to " + std::to_string(pairs) + ", the padding, and experts to " +
                           std::to_string(p.layer.local_experts() - 1));
    }
    if (pair == pairs || expert < 0) continue;
    const std::int32_t source = gate_up ? pair / static_cast<std::int32_t>(p.layer.top_k) : pair;
    uses.push_back({pair, source, expert});
  }
  return uses;
}

std::vector<ExpertBlocks> local_blocks(const OpProblem& p, std::span<const std::int32_t> ids,
                                       std::int64_t block) {
  return aligned(ids, p.layer.expert_map, p.layer.experts, block, true);
}

std::vector<std::int32_t> counts_of(const OpProblem& p, std::span<const std::int32_t> ids) {
  std::vector<std::int32_t> counts(static_cast<std::size_t>(p.layer.local_experts()));
  for (const ExpertBlocks& e : local_blocks(p, ids, 1)) {
    counts[static_cast<std::size_t>(e.expert)] = static_cast<std::int32_t>(e.pairs.size());
  }
  return counts;
}

}  // namespace

GroupedShape grouped_shape(const OpProblem& p) {
  const bool gate_up = is(p, "gemm", "gate_up");
  const Role role = gate_up ? Role::w13 : Role::w2;
  const MatrixShape b = weight_shape(p.layer, role);
  const std::int64_t experts = p.layer.local_experts(), pairs = p.tokens * p.layer.top_k;
  const std::int64_t rows = is(p, "layout", "batched")             ? experts * p.tokens
                            : is(p, "layout", "sorted") && gate_up ? p.tokens
                                                                   : pairs;
  return {role, experts, rows, b.rows, b.cols};
}

void infer_grouped_gemm(const GivenTensors& given, OpProblem& p) {
  const GivenTensor* a = given.find("a");
  // Counts of rows are of the other two layouts; a third axis of a is batched's.
  if (is(p, "layout", "sorted") && given.find("rows_per_expert") != nullptr) {
    p.fields["layout"] =
        std::string(a != nullptr && a->shape.size() == 3 ? "batched" : "contiguous");
  }
  const std::int64_t columns = given.extent("b", 3, 1);
  if (columns % 2 != 0) p.fields["gemm"] = std::string("down");  // gate and up are even
  const bool gate_up = is(p, "gemm", "gate_up"), sorted = is(p, "layout", "sorted");
  const bool batched = is(p, "layout", "batched");
  if (p.layer.top_k == 0 && !(sorted && gate_up)) p.layer.top_k = 1;
  const std::size_t axes = batched ? 3 : 2;
  if (a != nullptr) {
    const std::int64_t rows = given.extent("a", axes, axes - 2);
    p.tokens = batched || (sorted && gate_up) ? rows : rows / p.layer.top_k;
  }
  const std::int64_t contracted = given.extent("a", axes, axes - 1);
  p.layer.hidden_size = gate_up ? contracted : columns;
  p.layer.intermediate_size = gate_up ? columns / 2 : contracted;
  const std::int64_t held =
      std::max(given.extent("b", 3, 0), given.extent("rows_per_expert", 1, 0));
  p.layer.experts = held;
  if (held == 0 || held >= p.layer.top_k) return;
  // A rank's share of the experts that tokens choose from.
  p.layer.experts = p.layer.top_k;
  p.layer.expert_map.assign(static_cast<std::size_t>(p.layer.top_k), -1);
  std::iota(p.layer.expert_map.begin(), p.layer.expert_map.begin() + held, 0);
}

std::vector<RowUse> row_uses(const OpProblem& p, std::span<const Tensor> inputs) {
  if (is(p, "layout", "sorted")) return sorted_uses(p, inputs);
  const auto counts = tensor_named(inputs, "rows_per_expert").as<std::int32_t>();
  const bool batched = is(p, "layout", "batched");
  const std::int64_t room = grouped_shape(p).rows;
  std::vector<RowUse> uses;
  std::int64_t next = 0;
  for (std::size_t e = 0; e < counts.size(); ++e) {
    if (batched) next = static_cast<std::int64_t>(e) * p.tokens;
    const std::int64_t most = batched ? p.tokens : room - next;
    if (counts[e] < 0 || counts[e] > most) {
      throw InputError("rows_per_expert",
                       std::to_string(counts[e]) + " rows of expert " + std::to_string(e),
                       "0 to " + std::to_string(most));
    }
    for (std::int32_t i = 0; i < counts[e]; ++i, ++next) {
      const auto row = static_cast<std::int32_t>(next);
      uses.push_back({row, row, static_cast<std::int32_t>(e)});
    }
  }
  return uses;
}

DrawnRows draw_grouped_rows(const OpProblem& p, const OpDraw& draw) {
  const GroupedShape shape = grouped_shape(p);
  const bool gate_up = shape.role == Role::w13;
  Layer layer = p.layer;  // whose x holds what each token contributes
  layer.hidden_size = gate_up ? shape.contracted : shape.contracted * p.layer.top_k;
  const std::int64_t distinct = draw.pool > 0 ? std::min(draw.pool, p.tokens) : p.tokens;
  OwnedInputs inputs = generate_inputs(layer, draw.distribution, draw.law, distinct, draw.seed,
                                       draw.stream, p.scheme.get());
  if (distinct < p.tokens) {
    inputs = repeat_from_pool(inputs, layer, p.tokens, draw.seed).inputs;
  }
  DrawnRows rows = {std::vector<float>(inputs.x.size()), std::move(inputs.topk_ids)};
  std::ranges::transform(inputs.x, rows.a.begin(),
                         [&](std::uint16_t bits) { return to_float(p.layer.dtype, bits); });
  return rows;
}

std::vector<float> laid_out(const OpProblem& p, const DrawnRows& drawn) {
  if (is(p, "layout", "sorted")) return drawn.a;
  const GroupedShape shape = grouped_shape(p);
  const bool gate_up = shape.role == Role::w13, batched = is(p, "layout", "batched");
  const auto width = static_cast<std::size_t>(shape.contracted);
  std::vector<float> a(static_cast<std::size_t>(shape.rows) * width);
  const auto counts = counts_of(p, drawn.topk_ids);
  std::vector<std::int64_t> first(counts.size());
  std::int64_t next = 0;
  for (std::size_t e = 0; e < counts.size(); ++e) {
    first[e] = batched ? static_cast<std::int64_t>(e) * p.tokens : next;
    next += counts[e];
  }
  for (const ExpertBlocks& e : local_blocks(p, drawn.topk_ids, 1)) {
    auto row = static_cast<std::size_t>(first[static_cast<std::size_t>(e.expert)]);
    for (const std::int32_t pair : e.pairs) {
      const std::int64_t source = gate_up ? pair / p.layer.top_k : pair;
      std::copy_n(drawn.a.begin() + source * shape.contracted, width,
                  a.begin() + static_cast<std::ptrdiff_t>(row++ * width));
    }
  }
  return a;
}

void place_rows(const OpProblem& p, std::span<const std::int32_t> ids,
                std::vector<Tensor>& inputs) {
  if (!is(p, "layout", "sorted")) {
    std::ranges::copy(counts_of(p, ids), inputs.back().as<std::int32_t>().begin());
    return;
  }
  const std::size_t at = inputs.size() - 3;
  const auto sorted = inputs[at].as<std::int32_t>(), experts = inputs[at + 1].as<std::int32_t>();
  std::ranges::fill(sorted, static_cast<std::int32_t>(ids.size()));
  std::ranges::fill(experts, -1);
  const std::int64_t block = p.number("block_size");
  for (const ExpertBlocks& e : local_blocks(p, ids, block)) {
    std::ranges::copy(e.pairs, sorted.begin() + e.begin);
    std::fill(experts.begin() + e.begin / block, experts.begin() + e.end / block, e.expert);
    inputs[at + 2].as<std::int32_t>()[0] = static_cast<std::int32_t>(e.end);
  }
}

}  // namespace moegauge
