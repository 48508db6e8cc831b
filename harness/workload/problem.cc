#include "harness/workload/problem.h"

#include "harness/suite/own_fields.h"
#include "harness/workload/replay_layer.h"
#include "reference/base/input_error.h"

namespace moegauge {
std::shared_ptr<const Scheme> scheme_of(const CaseCoordinates& c) {
  if (auto scheme = make_scheme(c.scheme)) return scheme;
  const UnknownName unknown = unknown_scheme(c.scheme);
  throw InputError(case_id(c), unknown.wrong, unknown.right);
}

Model model_of(const CaseCoordinates& c, const std::filesystem::path& root) {
  if (c.model != replay_model_name) return load_model(c.model, root);
  const auto file = replayed_file(c);
  if (!file) throw InputError(case_id(c), "the model replay without a file", "inputs file:PATH");
  const ReplayFile tensors(*file);
  tensors.require_layer_names();
  return replayed_model(tensors, c.fields, *scheme_of(c));
}

std::filesystem::path checkpoint_folder(const CaseCoordinates& c) {
  const std::filesystem::path model = c.model;
  if (model.extension() != ".json") return model;
  return model.has_parent_path() ? model.parent_path() : ".";
}

Problem problem_of(const CaseCoordinates& c, const std::filesystem::path& root) {
  Problem problem;
  problem.scheme = scheme_of(c);
  const Model model = model_of(c, root);
  const std::int64_t fused = fused_experts(c, model);
  problem.layer = with_fused_experts(rank_layer(model, c.tp, c.ep), fused);
  if (const auto only = problem.scheme->traits().only) problem.layer.dtype = *only;
  problem.tokens = c.tokens;
  if (const auto path = replayed_file(c)) {
    const ReplayFile file(*path);
    file.require_layer_names();
    take_from_file(file, *problem.scheme, problem.layer);
    check_tensors(file, problem, fused);
  }
  return problem;
}

}  // namespace moegauge
