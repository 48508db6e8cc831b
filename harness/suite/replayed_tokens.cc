#include "harness/suite/replayed_tokens.h"

#include "harness/json/nearest.h"
#include "harness/suite/suite.h"
#include "harness/tensors/safetensors.h"
#include "reference/base/input_error.h"

namespace moegauge {

std::int64_t replayed_tokens(const std::filesystem::path& file) {
  const SafetensorsFile tensors(file);
  for (const char* name : {"x", "topk_ids", "topk_weights", "router_logits"}) {
    const TensorInfo* found = tensors.header().find(name);
    if (found == nullptr) continue;
    if (found->shape.size() != 2 || found->shape[0] > max_tokens) {
      throw InputError(
          file.string(), "tensor " + in_quotes(name) + " is " + describe(*found),
          "a matrix with a row for each of at most " + std::to_string(max_tokens) + " tokens");
    }
    return found->shape[0];
  }
  throw InputError(file.string(), "it has no x, topk_ids, topk_weights or router_logits",
                   "write the number of tokens into the case");
}

}  // namespace moegauge
