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
  // Throws InputError where the layer has no experts under a name that is known.
  // `experts`: of the model.
  ExpertNames(const Checkpoint& checkpoint, std::int64_t layer, std::int64_t experts);

  // Whether all experts are in one tensor [experts, ...], gate and up in one matrix.
  bool fused() const { return fused_; }
  // One expert's part of the tensor `suffix` of a projection ("weight", "qweight"; of fused ones
  // "",
  // "_scales"); no file where there is none. The tensor of fused experts has `experts` of them:
  // throws InputError otherwise.
  Slab find(std::int64_t expert, Projection projection, std::string_view suffix) const;
  std::string name(std::int64_t expert, Projection projection, std::string_view suffix) const;
  std::string where() const { return checkpoint_.path().string(); }

 private:
  const Checkpoint& checkpoint_;
  std::string block_;                      // up to and with "experts."
  std::array<std::string_view, 3> words_;  // by Projection
  bool fused_ = false;
  std::int64_t experts_ = 0;
};

}  // namespace moegauge
