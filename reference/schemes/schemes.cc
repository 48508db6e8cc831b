#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "reference/schemes/family.h"
#include "reference/schemes/scheme.h"
#include "reference/schemes/units.h"

namespace moegauge {

namespace {

const std::vector<SchemeFamily>& families() {
  static const std::vector<SchemeFamily> all = all_families();
  return all;
}

// The parts of "_a_b"; one empty part for "_" and the like, which no family takes.
std::vector<std::string_view> split_options(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    text.remove_prefix(1);
    const std::size_t end = std::min(text.find('_'), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return parts;
}

}  // namespace

bool SchemeOptions::take(std::string_view option) {
  const auto found = std::ranges::find(left_, option);
  if (found == left_.end()) return false;
  left_.erase(found);
  return true;
}

std::span<const std::string_view> scheme_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const auto& family : families()) all.push_back(family.name);
    return all;
  }();
  return names;
}

std::string_view scheme_options(std::string_view name) {
  const auto found = std::ranges::find(families(), name, &SchemeFamily::name);
  return found == families().end() ? std::string_view() : found->options;
}

std::unique_ptr<const Scheme> make_scheme(std::string_view name) {
  for (const auto& family : families()) {
    if (!name.starts_with(family.name)) continue;
    const std::string_view rest = name.substr(family.name.size());
    if (!rest.empty() && rest.front() != '_') continue;
    SchemeOptions options(split_options(rest));
    auto scheme = family.make(options);
    return options.all_taken() ? std::move(scheme) : nullptr;
  }
  return nullptr;
}

MatrixShape weight_shape(const Layer& layer, Role role) {
  const bool first = role == Role::w13;
  return {.role = role,
          .rows = first ? 2 * layer.intermediate_size : layer.hidden_size,
          .cols = first ? layer.hidden_size : layer.intermediate_size,
          .dtype = layer.dtype,
          .gate_up_order = layer.gate_up_order,
          .whole_cols = first ? 0 : layer.whole_intermediate_size};
}

std::int64_t scales_of_row(const OperandTraits& weight, const MatrixShape& shape) {
  if (weight.scale == ScaleKind::none) return 0;
  if (weight.unit.cols == 0) return 1;
  return ceil_div(weight.group_index ? std::max(shape.cols, shape.whole_cols) : shape.cols,
                  weight.unit.cols);
}

}  // namespace moegauge
