#include "kernels/hip/layer_rules.h"

#include <string>

#include "kernels/hip/device/layer_args.h"
#include "kernels/hip/layer_format.h"
#include "kernels/hip/packing.h"

namespace moegauge::hip {
namespace {

Refusal shape_refusal(const char* what, std::int64_t value, const std::string& rule) {
  return {RefusalReason::shape,
          std::string(what) + " is " + std::to_string(value) + "; the kernels need " + rule};
}

std::string served_schemes(const Problem& problem, const Architecture& architecture) {
  std::string names;
  for (const std::string_view name : scheme_names()) {
    const std::shared_ptr<const Scheme> scheme = make_scheme(name);
    Layer layer = problem.layer;
    layer.dtype = scheme->traits().only.value_or(layer.dtype);
    if (format_of({layer, scheme, 0}, architecture))
      names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

}  // namespace

std::optional<Refusal> refuses_layer(const Problem& problem, const Architecture& architecture) {
  const Layer& layer = problem.layer;
  const auto format = format_of(problem, architecture);
  if (!format) {
    return Refusal{RefusalReason::scheme, "no kernels for scheme " + problem.scheme->name() +
                                              " on " + std::string(architecture.name) +
                                              "; there are some for " +
                                              served_schemes(problem, architecture)};
  }
  if (layer.router_weight_on_input && layer.top_k != 1) {
    return Refusal{RefusalReason::router_weight_on_input, "router weight on input with top_k " +
                                                              std::to_string(layer.top_k) +
                                                              "; it is defined for top_k 1 only"};
  }
  if (layer.hidden_size % 8 != 0)
    return shape_refusal("hidden_size", layer.hidden_size, "a multiple of 8 (16-byte rows)");
  if (layer.top_k < 1 || layer.top_k > moe::kMaxTopK)
    return shape_refusal("top_k", layer.top_k, "1 to " + std::to_string(moe::kMaxTopK));
  if (layer.local_experts() < 1 || layer.local_experts() > moe::kMaxExperts) {
    return shape_refusal("the number of local experts", layer.local_experts(),
                         "1 to " + std::to_string(moe::kMaxExperts));
  }
  if (const auto why = straddles(layer, *format)) return Refusal{RefusalReason::shape, *why};
  return std::nullopt;
}

}  // namespace moegauge::hip
