#include "harness/suite/replayed_tokens.h"

#include "harness/json/nearest.h"
#include "harness/suite/given_tensors.h"
#include "harness/tensors/safetensors.h"
#include "reference/base/input_error.h"
#include "reference/ops/op.h"

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

std::int64_t replayed_op_tokens(const CaseCoordinates& c, const std::filesystem::path& root) {
  const SafetensorsFile file(*replayed_file(c));
  const Op& op = *find_op(c.op);
  Model model;
  if (c.model == replay_model_name) {
    for (const auto& [key, value] : file.header().metadata) {
      if (key == "layer") read_layer_fields(value, file.path().string(), model);
    }
    read_layer_fields(c.fields, "the case", model);
  } else {
    model = load_model(c.model, root);
  }
  OpProblem problem{.op = c.op, .layer = model.layer, .fields = op_fields_of(c)};
  problem.tokens = -1;
  op.infer(given_tensors(file), problem);
  if (problem.tokens >= 0 && problem.tokens <= max_tokens) return problem.tokens;
  const bool unknown = problem.tokens < 0;
  throw InputError(file.path().string(),
                   unknown ? "no tensor says how many tokens there are"
                           : "it has rows for " + std::to_string(problem.tokens) + " tokens",
                   unknown ? "write the number of tokens into the case"
                           : "at most " + std::to_string(max_tokens));
}

}  // namespace moegauge
