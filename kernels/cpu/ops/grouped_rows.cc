#include "kernels/cpu/ops/grouped_rows.h"

#include <algorithm>
#include <numeric>

namespace moegauge::cpu {
namespace {

std::span<const std::int32_t> ints(std::span<const Tensor> inputs, const char* name) {
  return find_tensor(inputs, name)->as<std::int32_t>();
}

}  // namespace

GroupedRows::GroupedRows(const OpProblem& p)
    : layout_(p.word("layout") == "sorted"       ? Layout::sorted
              : p.word("layout") == "contiguous" ? Layout::contiguous
                                                 : Layout::batched),
      gate_up_(p.word("gemm") == "gate_up"),
      experts_(p.layer.local_experts()),
      tokens_(p.tokens),
      top_k_(p.layer.top_k),
      block_(p.number("block_size")),
      begin_(static_cast<std::size_t>(experts_ + 1)),
      rows_(static_cast<std::size_t>(tokens_ * top_k_)),
      // Tokens are encoded once however many experts they go to.
      sources_(static_cast<std::size_t>(layout_ == Layout::sorted && gate_up_ ? tokens_
                                                                              : tokens_ * top_k_)) {
}

std::optional<std::string> GroupedRows::wrong_counts(std::span<const std::int32_t> counts) const {
  std::int64_t rows = 0;
  for (const std::int32_t count : counts) {
    rows += count;
    const bool fits = layout_ == Layout::batched ? count <= tokens_ : rows <= tokens_ * top_k_;
    if (count >= 0 && fits) continue;
    return "rows_per_expert holds " + std::to_string(count) + ", more than there is room for";
  }
  return std::nullopt;
}

std::optional<std::string> GroupedRows::wrong(std::span<const Tensor> inputs) const {
  const std::int64_t pairs = tokens_ * top_k_;
  if (layout_ != Layout::sorted) return wrong_counts(ints(inputs, "rows_per_expert"));
  const std::int64_t end = ints(inputs, "num_tokens_post_padded")[0];
  const auto sorted = ints(inputs, "sorted_token_ids");
  if (end < 0 || end > std::ssize(sorted) || end % block_ != 0) {
    return "num_tokens_post_padded is " + std::to_string(end) + "; whole blocks of " +
           std::to_string(block_) + " are served";
  }
  std::vector<bool> seen(static_cast<std::size_t>(pairs));
  for (const std::int32_t pair : sorted.first(static_cast<std::size_t>(end))) {
    if (pair == pairs) continue;
    if (pair < 0 || pair > pairs || seen[static_cast<std::size_t>(pair)]) {
      return "sorted_token_ids holds " + std::to_string(pair) +
             ", no pair or one that stands twice";
    }
    seen[static_cast<std::size_t>(pair)] = true;
  }
  for (const std::int32_t expert :
       ints(inputs, "expert_ids").first(static_cast<std::size_t>(end / block_))) {
    if (expert >= experts_) return "expert_ids holds " + std::to_string(expert);
  }
  return std::nullopt;
}

void GroupedRows::place_sorted(std::span<const Tensor> inputs) {
  const std::int32_t* const sorted = ints(inputs, "sorted_token_ids").data();
  const std::int32_t* const block_expert = ints(inputs, "expert_ids").data();
  const std::int64_t end = ints(inputs, "num_tokens_post_padded")[0];
  const auto padding = static_cast<std::int32_t>(tokens_ * top_k_);
  const auto over_entries = [&](const auto& fn) {
    for (std::int64_t i = 0; i < end; ++i) {
      const std::int32_t expert = block_expert[i / block_];
      if (expert >= 0 && sorted[i] != padding) fn(static_cast<std::size_t>(expert), sorted[i]);
    }
  };
  // Blocks may come in any order of experts: counted, then placed.
  over_entries([&](std::size_t e, std::int32_t) { ++begin_[e + 1]; });
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  std::vector<std::int64_t> next(begin_.begin(), begin_.end() - 1);
  std::ranges::fill(sources_, -1);
  over_entries([&](std::size_t e, std::int32_t pair) {
    const std::int32_t source = gate_up_ ? pair / static_cast<std::int32_t>(top_k_) : pair;
    rows_[static_cast<std::size_t>(next[e]++)] = {pair, source, source};
    sources_[static_cast<std::size_t>(source)] = source;
  });
}

void GroupedRows::place(std::span<const Tensor> inputs) {
  std::ranges::fill(begin_, 0);
  if (layout_ == Layout::sorted) return place_sorted(inputs);
  const auto counts = ints(inputs, "rows_per_expert");
  // Batches of one's own may hold more rows than a layer has pairs.
  const auto all =
      static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  if (all > rows_.size()) {
    rows_.resize(all);
    sources_.resize(all);
  }
  std::int32_t next = 0;
  for (std::size_t e = 0; e < counts.size(); ++e) {
    const auto first = static_cast<std::int32_t>(static_cast<std::int64_t>(e) * tokens_);
    for (std::int32_t i = 0; i < counts[e]; ++i, ++next) {
      const std::int32_t row = layout_ == Layout::batched ? first + i : next;
      rows_[static_cast<std::size_t>(next)] = {row, row, next};
      sources_[static_cast<std::size_t>(next)] = row;
    }
    begin_[e + 1] = next;
  }
  std::fill(sources_.begin() + next, sources_.end(), -1);
}

}  // namespace moegauge::cpu
