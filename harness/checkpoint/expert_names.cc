#include "harness/checkpoint/expert_names.h"

#include <algorithm>
#include <span>

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
// DeepSeek, GLM and Kimi; Qwen; Llama-4.
constexpr std::string_view kSharedBlocks[] = {".mlp.shared_experts.", ".mlp.shared_expert.",
                                              ".feed_forward.shared_expert."};
// Behind the shared expert's block in place of the last point, where its output is multiplied by
// the sigmoid of a product with the token.
constexpr std::string_view kSharedGate = "_gate.weight";
using Words = std::array<std::string_view, 3>;
constexpr Words kLinear = {"gate_proj", "up_proj", "down_proj"};
constexpr Words kWords[] = {{"w1", "w3", "w2"}, kLinear};
constexpr Words kFused = {"gate_up_proj", "gate_up_proj", "down_proj"};
// What a gate projection has in any packing.
constexpr std::string_view kSuffixes[] = {"weight", "weight_packed", "qweight"};
constexpr std::string_view kFusedSuffixes[] = {"", "_blocks"};

bool has(const Checkpoint& checkpoint, const std::string& name) {
  return checkpoint.find(name).file != nullptr;
}

std::string at(std::string_view prefix, std::int64_t layer, std::string_view block) {
  return std::string(prefix) + std::to_string(layer) + std::string(block);
}

}  // namespace

bool ExpertNames::found(const std::string& block, const Words& words, Form form) {
  block_ = block;
  words_ = words;
  form_ = form;
  const std::span<const std::string_view> suffixes =
      fused() ? std::span<const std::string_view>(kFusedSuffixes) : kSuffixes;
  return std::ranges::any_of(suffixes, [this](std::string_view suffix) {
    return has(checkpoint_, name(0, Projection::gate, suffix));
  });
}

ExpertNames ExpertNames::routed(const Checkpoint& checkpoint, std::int64_t layer,
                                std::int64_t experts) {
  ExpertNames names(checkpoint, experts);
  for (const std::string_view prefix : kPrefixes) {
    for (const std::string_view block : kBlocks) {
      for (const Words& words : kWords) {
        if (names.found(at(prefix, layer, block), words, Form::numbered)) return names;
      }
      if (names.found(at(prefix, layer, block), kFused, Form::fused)) return names;
    }
  }
  throw InputError(checkpoint.path().string(),
                   "layer " + std::to_string(layer) + " has no experts under a known name",
                   "e.g. " + at(kPrefixes[0], layer, ".mlp.experts.0.gate_proj.weight") +
                       "; see docs/replay.md");
}

ExpertNames ExpertNames::shared(const Checkpoint& checkpoint, std::int64_t layer) {
  ExpertNames names(checkpoint, 1);
  for (const std::string_view prefix : kPrefixes) {
    for (const std::string_view block : kSharedBlocks) {
      const std::string here = at(prefix, layer, block);
      if (!names.found(here, kLinear, Form::single)) continue;
      const std::string gate = here.substr(0, here.size() - 1) + std::string(kSharedGate);
      if (!has(checkpoint, gate)) return names;
      throw InputError(checkpoint.path().string(),
                       "tensor " + in_quotes(gate) + " weighs the shared expert of each token",
                       "a fused shared expert has the weight 1: leave shared_experts out");
    }
  }
  throw InputError(checkpoint.path().string(),
                   "layer " + std::to_string(layer) + " has no shared expert under a known name",
                   "e.g. " + at(kPrefixes[0], layer, ".mlp.shared_experts.gate_proj.weight") +
                       "; see docs/replay.md");
}

std::string ExpertNames::name(std::int64_t expert, Projection projection,
                              std::string_view suffix) const {
  const std::string word(words_[static_cast<std::size_t>(projection)]);
  if (fused()) return block_ + word + std::string(suffix);
  const std::string number = form_ == Form::numbered ? std::to_string(expert) + "." : "";
  return block_ + number + word + "." + std::string(suffix);
}

Slab ExpertNames::find(std::int64_t expert, Projection projection, std::string_view suffix) const {
  const auto [file, tensor] = checkpoint_.find(name(expert, projection, suffix));
  if (file == nullptr) return {};
  Slab slab{file, tensor, tensor->shape, 0};
  if (!fused()) return slab;
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
