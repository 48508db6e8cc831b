// One packing of a checkpoint's experts: which tensors it has, what they must be, how they are
// read.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "harness/checkpoint/expert_names.h"
#include "harness/checkpoint/packings.h"

namespace moegauge {

// What config.json says of the weights.
struct QuantizationConfig {
  std::string file = {};                    // config.json's path
  std::string method = {};                  // quant_method; empty: not quantised
  std::string scheme = {};                  // the name of the scheme that it picks; empty likewise
  bool zeros_less_one = true;               // GPTQ's checkpoint_format
  std::shared_ptr<const Scheme> made = {};  // of `scheme`; null likewise
};

// A projection as the model has it.
struct Whole {
  std::int64_t expert = 0;  // global
  Projection projection = Projection::gate;
  std::int64_t rows = 0, cols = 0;
};

class ExpertPacking {
 public:
  virtual ~ExpertPacking() = default;
  // Throws InputError where a tensor is missing, is not what it must be, or indexes beyond a group.
  virtual void check(const Whole& whole) const = 0;
  virtual Unpacked read(const Whole& whole, const Extent& extent) const = 0;
  // Of weights that are not quantised.
  virtual std::optional<TensorDtype> originals() const { return std::nullopt; }
};

// The packing that the tensors are in; throws InputError that says both where config.json says
// another. `names` and `config` are kept by reference.
std::unique_ptr<ExpertPacking> find_packing(const ExpertNames& names,
                                            const QuantizationConfig& config);

}  // namespace moegauge
