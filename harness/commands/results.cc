#include "harness/commands/results.h"

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <ostream>

namespace moegauge {

LoadedResult load_for_judging(const std::string& file, const Environment& environment) {
  LoadedResult loaded = load_result(file);
  if (loaded.truncated) environment.err << "moegauge: warning: " << *loaded.truncated << '\n';
  for (const auto& [key, sentence] : loaded.result.context) {
    if (key != disturbed_context) continue;
    environment.err << "moegauge: warning: " << file
                    << " was disturbed when it was measured: " << sentence << '\n';
  }
  return loaded;
}

bool any_ok(const Result& result) {
  return std::ranges::any_of(result.cases,
                             [](const CaseRecord& record) { return record.measured() != nullptr; });
}

int exit_code_of_run(const Result& result) {
  bool machine_failed = false, case_failed = false;
  for (const CaseRecord& record : result.cases) {
    switch (record.status()) {
      case Status::inaccurate:
      case Status::crashed:
      case Status::timeout:
      case Status::out_of_memory:
      case Status::error:
        case_failed = true;
        break;
      case Status::infrastructure:
        machine_failed = true;
        break;
      case Status::ok:
      case Status::unsupported:
      case Status::refused_config:
      case Status::skipped:
        break;
    }
  }
  if (case_failed) return exit_case_failed;
  return machine_failed || !any_ok(result) ? exit_no_verdict : exit_ok;
}

void blame_the_machine_for_absent_backends(Result& result) {
  for (CaseRecord& record : result.cases) {
    auto* outcome = std::get_if<Unmeasured>(&record.outcome);
    if (outcome == nullptr || outcome->status != Status::unsupported) continue;
    if (std::ranges::count(outcome->absent_backends, record.coordinates.backend) == 0) continue;
    outcome->status = Status::infrastructure;
    outcome->reason =
        "asked for by --backend or --device, and not on this machine: " + outcome->reason;
  }
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  ::gmtime_r(&now, &utc);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &utc);
  return text;
}

std::string strict_json(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace moegauge
