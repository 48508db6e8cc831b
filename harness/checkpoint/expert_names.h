// Where a model's experts are in a checkpoint: the names of Hugging Face's modelling code.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "harness/checkpoint/slab.h"
#include "harness/tensors/checkpoint.h"

namespace moegauge {

enum class Projection : std::uint8_t { gate, up, down };

class ExpertNames {
 public:
  // The layer's routed experts, of which the model has `experts`; its one shared expert, number 0.
  // Both throw InputError where the layer has none under a name that is known, `shared` also where
  // a gate of its own weighs it. `checkpoint` is kept by reference.
  static ExpertNames routed(const Checkpoint& checkpoint, std::int64_t layer, std::int64_t experts);
  static ExpertNames shared(const Checkpoint& checkpoint, std::int64_t layer);

  // Whether all experts are in one tensor [experts, ...], gate and up in one matrix.
  bool fused() const { return form_ == Form::fused; }
  // One expert's part of the tensor `suffix` of a projection ("weight", "qweight"; of fused ones
  // "", "_scales"); no file where there is none. The tensor of fused experts has `experts` of them:
  // throws InputError otherwise.
  Slab find(std::int64_t expert, Projection projection, std::string_view suffix) const;
  std::string name(std::int64_t expert, Projection projection, std::string_view suffix) const;
  std::string where() const { return checkpoint_.path().string(); }

 private:
  using Words = std::array<std::string_view, 3>;  // by Projection
  enum class Form : std::uint8_t { numbered, fused, single };

  ExpertNames(const Checkpoint& checkpoint, std::int64_t experts)
      : checkpoint_(checkpoint), experts_(experts) {}
  bool found(const std::string& block, const Words& words, Form form);

  const Checkpoint& checkpoint_;
  std::string block_;  // up to and with "experts."
  Words words_ = {};
  Form form_ = Form::numbered;
  std::int64_t experts_ = 0;
};

}  // namespace moegauge
