// For the tests of this folder: problems of one op with fields from a table.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "reference/ops/op.h"

namespace moegauge::testing_support {

inline const Op& op_named(std::string_view name) {
  if (const Op* op = find_op(name)) return *op;
  throw std::runtime_error("no op " + std::string(name));
}

// Described, with the op's own defaults where `fields` says nothing.
inline OpProblem op_problem(std::string_view name, const Layer& layer, std::string_view scheme,
                            std::int64_t tokens, const OpFields& fields = {}) {
  const Op& op = op_named(name);
  OpProblem p;
  p.op = name;
  p.layer = layer;
  p.scheme = make_scheme(scheme);
  p.tokens = tokens;
  p.router.experts = layer.experts;
  p.router.top_k = layer.top_k;
  for (const OpField& field : op.fields()) p.fields[field.name] = field.fallback;
  for (const auto& [key, value] : fields) p.fields.at(key) = value;
  if (const auto undefined = op.describe(p)) throw std::runtime_error(*undefined);
  return p;
}

// The tensor of `specs` with that name, holding `values`.
template <typename T>
Tensor tensor_of(const std::vector<TensorSpec>& specs, std::string_view name,
                 const std::vector<T>& values) {
  for (const TensorSpec& spec : specs) {
    if (spec.name != name) continue;
    Tensor tensor(spec);
    if (tensor.as<T>().size() != values.size())
      throw std::runtime_error("a wrong number of values");
    std::copy(values.begin(), values.end(), tensor.as<T>().begin());
    return tensor;
  }
  throw std::runtime_error("no tensor " + std::string(name));
}

}  // namespace moegauge::testing_support
