// What a single op is asked to compute: align, quantize and the others, by tables of named tensors.
// Which tensors those are is written by the op's own file in reference/ops; kernels read them here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reference/layer.h"
#include "reference/routing.h"
#include "reference/schemes/scheme.h"
#include "reference/tensor.h"

namespace moegauge {

// An op's own suite fields, such as block_size; every field that the op has is there.
using OpValue = std::variant<std::int64_t, std::string>;
using OpFields = std::map<std::string, OpValue>;

struct OpProblem {
  std::string op = {};
  Layer layer = {};  // of the rank
  std::shared_ptr<const Scheme> scheme = {};
  Router router = {};
  bool correction_bias = false;  // the router has one
  std::int64_t tokens = 0;       // M
  OpFields fields = {};
  // Loaded once and packed as a kernel likes, given anew for every call, returned. Filled in by
  // Op::describe (reference/ops/op.h).
  std::vector<TensorSpec> weights = {}, inputs = {}, outputs = {};

  // Of a field that the op has.
  std::int64_t number(const std::string& field) const {
    return std::get<std::int64_t>(fields.at(field));
  }
  const std::string& word(const std::string& field) const {
    return std::get<std::string>(fields.at(field));
  }
};

}  // namespace moegauge
