// align: (token, slot) pairs grouped by expert in blocks of rows, the layout that fused-MoE kernels
// launch over (as vLLM's moe_align_block_size lays it out).
//
//   topk_ids [M, top_k], -1 = dropped; expert_map [E] (under expert parallelism only): global id ->
//   local id, or -1 where another rank holds the expert
//
//   sorted_token_ids        pairs (token * top_k + slot) of each expert in rising order of global
//                           expert ids, each expert padded to whole blocks with the value
//                           M * top_k, which also fills what is left of the array
//   expert_ids              of each block: the (local) expert, or -1; undefined beyond the last
//   num_tokens_post_padded  [1]: entries in whole blocks
//
// Within an expert any order of its pairs is right (kernels count with atomics), padding comes
// last. A dropped pair is nowhere. Pairs of experts that another rank holds: `remote_experts` is
// `blocks` where they have blocks with expert -1, for kernels that store zeros for them, or
// `skipped` where they are nowhere.
#include <algorithm>
#include <string>
#include <vector>

#include "reference/inputs/routing_law.h"
#include "reference/ops/alignment.h"
#include "reference/ops/judging.h"

namespace moegauge {
namespace {

class AlignTruth final : public OpTruth {
 public:
  AlignTruth(std::vector<ExpertBlocks> experts, std::int64_t block, std::int32_t padding,
             std::int64_t entries)
      : experts_(std::move(experts)), block_(block), padding_(padding), entries_(entries) {}

  std::vector<Tensor> answers() const override {
    std::vector<Tensor> all = {Tensor({"emulated_sorted_token_ids", TensorType::int32, {entries_}}),
                               Tensor({"emulated_expert_ids", TensorType::int32, {blocks()}}),
                               Tensor({"emulated_num_tokens_post_padded", TensorType::int32, {1}})};
    const auto sorted = all[0].as<std::int32_t>(), experts = all[1].as<std::int32_t>();
    std::ranges::fill(sorted, padding_);
    std::ranges::fill(experts, -1);
    for (const ExpertBlocks& s : experts_) {
      std::ranges::copy(s.pairs, sorted.begin() + s.begin);
      std::fill(experts.begin() + s.begin / block_, experts.begin() + s.end / block_, s.expert);
    }
    all[2].as<std::int32_t>()[0] =
        static_cast<std::int32_t>(experts_.empty() ? 0 : experts_.back().end);
    return all;
  }

  OpErrors judge(std::span<const Tensor> outputs) const override {
    const auto sorted = outputs[0].as<std::int32_t>();
    const auto experts = outputs[1].as<std::int32_t>();
    EntryCount count;
    const std::int64_t end = experts_.empty() ? 0 : experts_.back().end;
    expect(count, outputs[2], 0, outputs[2].as<std::int32_t>()[0], end);
    for (const ExpertBlocks& s : experts_) {
      for (std::int64_t b = s.begin / block_; b < s.end / block_; ++b) {
        expect(count, outputs[1], b, experts[static_cast<std::size_t>(b)], s.expert);
      }
      judge_expert(count, outputs[0], s);
    }
    for (auto i = static_cast<std::size_t>(end); i < sorted.size(); ++i) {
      expect(count, outputs[0], static_cast<std::int64_t>(i), sorted[i], padding_);
    }
    return count.errors();
  }

 private:
  std::int64_t blocks() const { return (entries_ + block_ - 1) / block_; }

  static void expect(EntryCount& count, const Tensor& tensor, std::int64_t index,
                     std::int64_t found, std::int64_t right) {
    count.expect(found == right, index,
                 [&] { return entry_is(tensor.spec.name, index, found, right); });
  }

  void judge_expert(EntryCount& count, const Tensor& sorted, const ExpertBlocks& s) const {
    const auto all = sorted.as<std::int32_t>();
    const auto begin = all.begin() + s.begin;
    std::vector<std::int32_t> found(begin, begin + static_cast<std::ptrdiff_t>(s.pairs.size()));
    std::ranges::sort(found);
    for (std::size_t i = 0; i < found.size(); ++i) {
      expect(count, sorted, s.begin + static_cast<std::int64_t>(i), found[i], s.pairs[i]);
    }
    for (auto i = s.begin + static_cast<std::int64_t>(found.size()); i < s.end; ++i) {
      expect(count, sorted, i, all[static_cast<std::size_t>(i)], padding_);
    }
  }

  std::vector<ExpertBlocks> experts_;
  std::int64_t block_;
  std::int32_t padding_;
  std::int64_t entries_;
};

class Align final : public Op {
 public:
  std::string_view name() const override { return "align"; }
  std::vector<OpField> fields() const override {
    return {{.name = "block_size", .low = 1, .high = 65536, .fallback = std::int64_t{64}},
            {.name = "remote_experts",
             .words = {"blocks", "skipped"},
             .fallback = std::string("blocks")}};
  }
  bool has_exact_inputs() const override { return true; }
  bool order_is_open() const override { return true; }

  std::optional<std::string> describe(OpProblem& p) const override {
    const std::int64_t pairs = p.tokens * p.layer.top_k, block = p.number("block_size");
    const std::int64_t experts =
        p.word("remote_experts") == "blocks" ? p.layer.experts : p.layer.local_experts();
    const std::int64_t entries = aligned_room(pairs, experts, block);
    if (entries > INT32_MAX) {
      return std::to_string(entries) + " entries are more than 32 bits count";
    }
    p.inputs = {{"topk_ids", TensorType::int32, {p.tokens, p.layer.top_k}}};
    if (!p.layer.expert_map.empty()) {
      p.inputs.push_back({"expert_map", TensorType::int32, {p.layer.experts}});
    }
    p.outputs = {{"sorted_token_ids", TensorType::int32, {entries}},
                 {"expert_ids", TensorType::int32, {(entries + block - 1) / block}},
                 {"num_tokens_post_padded", TensorType::int32, {1}}};
    return std::nullopt;
  }

  // Without a map, and where the case does not say, there are as many experts as the ids name.
  void infer(const GivenTensors& given, OpProblem& p) const override {
    p.tokens = given.extent("topk_ids", 2, 0, p.tokens);
    if (p.layer.top_k == 0) p.layer.top_k = given.extent("topk_ids", 2, 1);
    p.layer.experts = given.extent("expert_map", 1, 0, p.layer.experts);
    const GivenTensor* ids = given.find("topk_ids");
    if (p.layer.experts == 0 && ids != nullptr && ids->integers) {
      p.layer.experts = std::max<std::int64_t>(p.layer.top_k, 1);
      for (const std::int64_t id : ids->integers()) {
        p.layer.experts = std::max(p.layer.experts, id + 1);
      }
    }
    ignore_sizes({&p.layer.hidden_size, &p.layer.intermediate_size});
  }

  std::vector<Tensor> draw_inputs(const OpProblem& p, const OpDraw& draw) const override {
    auto inputs = make_tensors(p.inputs);
    std::ranges::copy(draw_ids(p.layer, draw.law, p.tokens, draw.seed, draw.stream),
                      inputs[0].as<std::int32_t>().begin());
    if (inputs.size() > 1) {
      std::ranges::copy(p.layer.expert_map, inputs[1].as<std::int32_t>().begin());
    }
    return inputs;
  }

  void check(const OpProblem& p, std::span<const Tensor> inputs) const override {
    for (const Tensor& ids : inputs) require_ids(ids, p.layer.experts);
  }

  OpWork work(const OpProblem& p, std::span<const Tensor>) const override {
    return {.operand_bytes = bytes_of(p.inputs) + bytes_of(p.outputs)};
  }

  std::unique_ptr<const OpTruth> truth(const OpProblem& p, std::span<const Tensor>,
                                       std::span<const Tensor> inputs, const OpDraw*,
                                       int) const override {
    const Tensor& ids = tensor_named(inputs, "topk_ids");
    const Tensor* map = find_tensor(inputs, "expert_map");
    check(p, inputs);
    const auto all = ids.as<std::int32_t>();
    const std::int64_t block = p.number("block_size");
    return std::make_unique<AlignTruth>(
        aligned(all, map != nullptr ? map->as<std::int32_t>() : std::span<const std::int32_t>(),
                p.layer.experts, block, p.word("remote_experts") == "skipped"),
        block, static_cast<std::int32_t>(all.size()), p.outputs[0].elements());
  }
};

}  // namespace

const Op& align_op() {
  static const Align op;
  return op;
}

}  // namespace moegauge
