// Which tensors of a checkpoint become what: decided before the first byte is written.
#pragma once

#include <string>
#include <vector>

#include "harness/tensors/checkpoint.h"
#include "harness/tensors/safetensors_writer.h"
#include "reference/convert/mxfp8_to_block.h"

namespace moegauge {

struct CopiedTensor {
  const TensorInfo* from = nullptr;
  std::size_t to = 0;  // place in ShardPlan::tensors
};

// Values with E8M0 scales, as [experts, rows, cols].
struct MxPair {
  const TensorInfo* values = nullptr;
  Checkpoint::Place scales;
  std::int64_t experts = 1, rows = 0, cols = 0;
  std::size_t values_to = 0, scales_to = 0;
};

struct ShardPlan {
  const SafetensorsFile* from = nullptr;
  std::vector<FileTensor> tensors;  // of the new file
  std::vector<CopiedTensor> copied;
  std::vector<MxPair> pairs;
};

struct ConvertPlan {
  std::vector<ShardPlan> shards;   // none without a tensor, unless it is the only one
  std::vector<std::string> notes;  // see ConvertReport
};

// Throws InputError where nothing is to be converted, a tensor has two companions, two tensors one,
// or a new name is taken.
ConvertPlan plan_conversion(const Checkpoint& checkpoint, const BlockTarget& target);

}  // namespace moegauge
