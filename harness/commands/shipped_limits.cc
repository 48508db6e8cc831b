#include "harness/commands/shipped_limits.h"

#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "harness/suite/own_fields.h"
#include "harness/workload/op_problem.h"
#include "harness/workload/problem.h"
#include "reference/base/input_error.h"

namespace moegauge {

namespace fs = std::filesystem;

namespace {

// The tensors of a file are those of the case's op. Throws InputError.
ErrorLimits limits_of(const CaseCoordinates& c, const CheckResult& check, const fs::path& root) {
  const bool reduced = check.numerics.accumulate == Accumulate::reduced;
  if (check.layer) {
    const auto scheme = make_scheme(c.scheme);
    if (scheme == nullptr)
      throw InputError(c.scheme, "this build has no such scheme",
                       "judge with a moegauge that has it");
    return scheme->error_limits(check.layer->dtype, reduced);
  }
  if (find_op(c.op) != nullptr && replayed_file(c)) {
    const auto problem = described_op(c, root);
    if (problem) return problem->scheme->error_limits(problem->layer.dtype, reduced);
  }
  const Problem problem = problem_of(c, root);
  return problem.scheme->error_limits(problem.layer.dtype, reduced);
}

}  // namespace

ShippedLimits shipped_limits(fs::path root) {
  using Limits = Expected<ErrorLimits, std::string>;
  using Key = std::tuple<std::string, std::string, bool, int>;
  auto known = std::make_shared<std::map<Key, Limits>>();
  return [root = std::move(root), known](const CaseRecord& record, const CheckResult& check) {
    const CaseCoordinates& c = record.coordinates;
    // Of a replayed layer its file knows the dtype.
    const Key key{c.model + (replayed_file(c) ? c.inputs : ""), c.scheme,
                  check.numerics.accumulate == Accumulate::reduced,
                  check.layer ? static_cast<int>(check.layer->dtype) : -1};
    const auto of_its_rows = [&check](const Limits& limits) {
      return limits ? Limits(limits->over(check.checked.rows)) : limits;
    };
    if (const auto found = known->find(key); found != known->end())
      return of_its_rows(found->second);
    Limits limits = Unexpected{std::string()};
    try {
      limits = limits_of(c, check, root);
    } catch (const InputError& error) {
      limits = Unexpected{std::string(error.what())};
    }
    return of_its_rows(known->emplace(key, std::move(limits)).first->second);
  };
}

LayerFactsOf layer_facts(fs::path root) {
  using Key = std::tuple<std::string, std::string, std::int64_t, std::int64_t>;
  auto known = std::make_shared<std::map<Key, std::optional<LayerFacts>>>();
  return [root = std::move(root), known](const CaseCoordinates& c) -> std::optional<LayerFacts> {
    if (replayed_file(c)) return std::nullopt;
    const Key key{c.model, op_label(c), c.tp, c.ep};
    if (const auto found = known->find(key); found != known->end()) return found->second;
    std::optional<LayerFacts> facts;
    try {
      const Model model = load_model(c.model, root);
      const Layer layer =
          with_fused_experts(rank_layer(model, c.tp, c.ep), fused_experts(c, model));
      facts = LayerFacts{.experts = layer.local_experts(),
                         .top_k = layer.top_k,
                         .hidden = layer.hidden_size,
                         .intermediate = layer.intermediate_size};
    } catch (const InputError&) {
      // A result may come from a machine with other models; its layer is then not described.
    }
    return known->emplace(key, facts).first->second;
  };
}

}  // namespace moegauge
