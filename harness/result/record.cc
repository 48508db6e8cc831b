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

std::string CaseRecord::id() const { return case_id(coordinates); }

Status CaseRecord::status() const {
  const auto* unmeasured = std::get_if<Unmeasured>(&outcome);
  return unmeasured == nullptr ? Status::ok : unmeasured->status;
}

}  // namespace moegauge
