#include "harness/checkpoint/expert_names.h"

#include "harness/json/nearest.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

// Text models, and those that are the text half of a multimodal one.
constexpr std::string_view kPrefixes[] = {"model.layers.", "language_model.model.layers.",
                                          "model.language_model.layers."};
// Mixtral and MiniMax; Qwen3, DeepSeek, GLM, Kimi and gpt-oss; Llama-4.
constexpr std::string_view kBlocks[] = {".block_sparse_moe.experts.", ".mlp.experts.",
                                        ".feed_forward.experts."};
using Words = std::array<std::string_view, 3>;
constexpr Words kWords[] = {{"w1", "w3", "w2"}, {"gate_proj", "up_proj", "down_proj"}};
constexpr Words kFused = {"gate_up_proj", "gate_up_proj", "down_proj"};
// What a gate projection has in any packing.
constexpr std::string_view kSuffixes[] = {"weight", "weight_packed", "qweight"};
constexpr std::string_view kFusedSuffixes[] = {"", "_blocks"};

bool has(const Checkpoint& checkpoint, const std::string& name) {
  return checkpoint.find(name).file != nullptr;
}

}  // namespace

ExpertNames::ExpertNames(const Checkpoint& checkpoint, std::int64_t layer, std::int64_t experts)
    : checkpoint_(checkpoint), experts_(experts) {
  for (const std::string_view prefix : kPrefixes) {
    for (const std::string_view block : kBlocks) {
      block_ = std::string(prefix) + std::to_string(layer) + std::string(block);
      for (const Words& words : kWords) {
        words_ = words;
        for (const std::string_view suffix : kSuffixes) {
          if (has(checkpoint, name(0, Projection::gate, suffix))) return;
        }
      }
      words_ = kFused;
      fused_ = true;
      for (const std::string_view suffix : kFusedSuffixes) {
        if (has(checkpoint, name(0, Projection::gate, suffix))) return;
      }
      fused_ = false;
    }
  }
  throw InputError(checkpoint.path().string(),
                   "layer " + std::to_string(layer) + " has no experts under a known name",
                   "e.g. " + std::string(kPrefixes[0]) + std::to_string(layer) +
                       ".mlp.experts.0.gate_proj.weight; see docs/replay.md");
}

std::string ExpertNames::name(std::int64_t expert, Projection projection,
                              std::string_view suffix) const {
  const std::string word(words_[static_cast<std::size_t>(projection)]);
  if (fused_) return block_ + word + std::string(suffix);
  return block_ + std::to_string(expert) + "." + word + "." + std::string(suffix);
}

Slab ExpertNames::find(std::int64_t expert, Projection projection, std::string_view suffix) const {
  const auto [file, tensor] = checkpoint_.find(name(expert, projection, suffix));
  if (file == nullptr) return {};
  Slab slab{file, tensor, tensor->shape, 0};
  if (!fused_) return slab;
  if (tensor->shape.empty() || tensor->shape.front() != experts_) {
    throw InputError(file->path().string(),
                     "tensor " + in_quotes(tensor->name) + " is " + describe(*tensor),
                     "its first axis holds the " + std::to_string(experts_) + " experts");
  }
  slab.shape.erase(slab.shape.begin());
  slab.offset =
      tensor->bytes() / static_cast<std::uint64_t>(experts_) * static_cast<std::uint64_t>(expert);
  return slab;
}

}  // namespace moegauge
