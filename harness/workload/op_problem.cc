#include "harness/workload/op_problem.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "harness/suite/given_tensors.h"
#include "harness/workload/problem.h"
#include "harness/workload/replay_layer.h"
#include "reference/base/input_error.h"
#include "reference/ops/op.h"

namespace moegauge {
namespace {

std::vector<TensorDtype> dtypes_of(TensorType type) {
  switch (type) {
    case TensorType::fp32:
      return {TensorDtype::f32};
    case TensorType::fp64:
      return {TensorDtype::f64};
    case TensorType::bf16:
      return {TensorDtype::bf16};
    case TensorType::fp16:
      return {TensorDtype::f16};
    case TensorType::int32:
      return {TensorDtype::i32};
    case TensorType::int8:
      return {TensorDtype::i8};
    case TensorType::e4m3fn:
    case TensorType::e4m3fnuz:
      return {TensorDtype::f8_e4m3, TensorDtype::u8};
    case TensorType::e8m0:
      return {TensorDtype::f8_e8m0, TensorDtype::u8};
    case TensorType::packed:
      break;
  }
  return {TensorDtype::u8};
}

std::vector<const TensorSpec*> specs_of(const OpProblem& problem) {
  std::vector<const TensorSpec*> all;
  for (const auto* specs : {&problem.inputs, &problem.weights}) {
    for (const TensorSpec& spec : *specs) all.push_back(&spec);
  }
  return all;
}

OpProblem problem_of_model(const CaseCoordinates& c, const Model& model) {
  OpProblem problem{.op = c.op,
                    .layer = rank_layer(model, c.tp, c.ep),
                    .scheme = scheme_of(c),
                    .router = router_of(model),
                    .correction_bias = model.correction_bias,
                    .tokens = c.tokens,
                    .fields = op_fields_of(c)};
  if (const auto only = problem.scheme->traits().only) problem.layer.dtype = *only;
  return problem;
}

// No tensor of 16-bit floats but those of the layer's type has that type.
Dtype dtype_of_rows(const ReplayFile& file) {
  const auto half = [](const TensorInfo& t) { return t.dtype == TensorDtype::f16; };
  return std::ranges::any_of(file.tensors().header().tensors, half) ? Dtype::fp16 : Dtype::bf16;
}

// The sizes that no tensor told, with the tensors that would have.
void require_sizes(const ReplayFile& file, const Op& op, const OpProblem& problem) {
  const Layer& layer = problem.layer;
  std::string unknown;
  for (const auto& [what, size] : {std::pair{"the number of experts", layer.experts},
                                   {"top_k", layer.top_k},
                                   {"the hidden size", layer.hidden_size},
                                   {"the intermediate size", layer.intermediate_size}}) {
    if (size == 0 && unknown.empty()) unknown = what;
  }
  if (unknown.empty()) return;
  OpProblem any = problem;
  for (std::int64_t* size : {&any.layer.experts, &any.layer.top_k, &any.layer.hidden_size,
                             &any.layer.intermediate_size}) {
    *size = 1;
  }
  op.describe(any);
  std::string names;
  for (const TensorSpec* spec : specs_of(any)) names += (names.empty() ? "" : ", ") + spec->name;
  throw InputError(
      file.where(), "no tensor says what " + unknown + " is",
      (layer.top_k == 0 ? "put top_k into the case, or give one of " : "give one of ") + names +
          ", or name a model");
}

// Of the model "replay": what tensors and fields say.
OpProblem inferred_problem(const ReplayFile& file, const CaseCoordinates& c, const Op& op) {
  const GivenTensors given = given_tensors(file.tensors());
  Model model;
  model.name = file.where();
  read_layer_fields(file.metadata("layer"), file.where() + ": metadata key layer", model);
  read_layer_fields(c.fields, "the case", model);
  OpProblem problem{.op = c.op,
                    .layer = model.layer,
                    .scheme = scheme_of(c),
                    .correction_bias = model.correction_bias,
                    .tokens = c.tokens,
                    .fields = op_fields_of(c)};
  const auto only = problem.scheme->traits().only;
  problem.layer.dtype = only ? *only : dtype_of_rows(file);
  op.infer(given, problem);
  problem.tokens = c.tokens;
  require_sizes(file, op, problem);
  model.layer = problem.layer;
  check_model(model, file.where());
  check_routing(file, model);
  const std::int64_t shared = problem.router.shared_experts;
  problem.router = router_of(model);
  problem.router.shared_experts = shared;
  return problem;
}

void check_forms(const ReplayFile& file, const OpProblem& problem) {
  std::vector<std::string> known, ignored = answer_names(problem);
  for (const TensorSpec* spec : specs_of(problem)) known.push_back(spec->name);
  file.require_names(
      known, ignored,
      "neither " + problem.op + " in the scheme " + problem.scheme->name() + " nor a dump of it");
  for (const TensorSpec* spec : specs_of(problem)) {
    const TensorForm form = form_of(*spec);
    if (const TensorInfo* tensor = file.find(spec->name)) file.require(*tensor, {&form, 1});
  }
}

}  // namespace

TensorForm form_of(const TensorSpec& spec) {
  TensorForm form = {dtypes_of(spec.type), spec.shape};
  // Scales with and without axes of 1 are in use, and scalars.
  form.loose = spec.name.ends_with("scale") || spec.shape == std::vector<std::int64_t>{1};
  if (spec.name == "router_logits") {
    form.dtypes.insert(form.dtypes.end(), {TensorDtype::bf16, TensorDtype::f16});
  }
  return form;
}

std::vector<std::string> answer_names(const OpProblem& problem) {
  std::vector<std::string> names = {"emulated", "unquantized"};
  for (const TensorSpec& output : problem.outputs) {
    names.push_back(output.name);
    names.push_back("emulated_" + output.name);
  }
  return names;
}

Expected<OpProblem, std::string> described_op(const CaseCoordinates& c,
                                              const std::filesystem::path& root) {
  if (c.layer >= 0) {
    throw InputError(case_id(c), "a single op with a checkpoint's weights",
                     "generated ones, or those of a file: a checkpoint is for whole layers");
  }
  const Op& op = *find_op(c.op);
  const auto path = replayed_file(c);
  const auto described = [&op](OpProblem problem) -> Expected<OpProblem, std::string> {
    if (auto undefined = op.describe(problem)) return Unexpected{std::move(*undefined)};
    return problem;
  };
  if (!path) return described(problem_of_model(c, load_model(c.model, root)));

  const ReplayFile file(*path);
  OpProblem problem;
  if (c.model == replay_model_name) {
    problem = inferred_problem(file, c, op);
  } else {
    const Model model = load_model(c.model, root);
    check_routing(file, model);
    problem = problem_of_model(c, model);
  }
  if (file.find("correction_bias") != nullptr) problem.correction_bias = true;
  if (auto map = given_expert_map(file, problem.layer.experts); !map.empty()) {
    problem.layer.expert_map = std::move(map);
  }
  auto result = described(std::move(problem));
  if (result) check_forms(file, *result);
  return result;
}

}  // namespace moegauge
