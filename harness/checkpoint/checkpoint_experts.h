// The experts of one layer of a Hugging Face checkpoint, read one at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "harness/suite/suite.h"
#include "harness/tensors/tensor_dtype.h"
#include "kernels/backend.h"

namespace moegauge {

struct CheckpointLayer {
  std::filesystem::path folder;  // with config.json and safetensors files
  std::int64_t layer = 0;
};

// The scheme that config.json picks; nothing where the weights are not quantised, so that any
// scheme may quantise them. Throws InputError where there is no config.json, or its
// quantization_config is of a kind that has no scheme here.
std::optional<std::string> checkpoint_scheme_of(const std::filesystem::path& folder);

class CheckpointExperts : public ExpertSource {
 public:
  // What error.quantization compares with.
  virtual std::string quantization_of() const = 0;
  // The element type of weights that are not quantised.
  virtual std::optional<TensorDtype> originals() const = 0;
};

// `whole` is the model before tensor parallelism, `problem` this rank's. Every tensor that may be
// asked for is looked up and its form checked here; throws InputError that names file and tensor,
// or says how config.json and tensors disagree.
std::unique_ptr<CheckpointExperts> open_checkpoint(const CheckpointLayer& from, const Model& whole,
                                                   const Problem& problem);

}  // namespace moegauge
