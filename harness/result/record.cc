#include "harness/result/record.h"

namespace moegauge {

std::string_view to_string(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::inaccurate:
      return "inaccurate";
    case Status::unsupported:
      return "unsupported";
    case Status::refused_config:
      return "refused_config";
    case Status::crashed:
      return "crashed";
    case Status::timeout:
      return "timeout";
    case Status::out_of_memory:
      return "out_of_memory";
    case Status::infrastructure:
      return "infrastructure";
    case Status::error:
      return "error";
    case Status::skipped:
      return "skipped";
  }
  return "error";
}

LayerShape shape_of(const Layer& layer) {
  return {.experts = layer.experts,
          .local_experts = layer.local_experts(),
          .top_k = layer.top_k,
          .hidden_size = layer.hidden_size,
          .intermediate_size = layer.intermediate_size,
          .dtype = layer.dtype};
}

std::string describe(const LayerShape& s) {
  const auto number = [](const char* name, std::int64_t value) {
    return std::string(name) + "=" + std::to_string(value);
  };
  return number("E", s.experts) +
         (s.local_experts == s.experts ? "" : " (" + std::to_string(s.local_experts) + " here)") +
         ", " + number("top_k", s.top_k) + ", " + number("K", s.hidden_size) + ", " +
         number("N", s.intermediate_size) + ", " +
         dtype_words.at(static_cast<std::size_t>(s.dtype));
}

std::string CaseRecord::id() const { return case_id(coordinates); }

Status CaseRecord::status() const {
  const auto* unmeasured = std::get_if<Unmeasured>(&outcome);
  return unmeasured == nullptr ? Status::ok : unmeasured->status;
}

}  // namespace moegauge
