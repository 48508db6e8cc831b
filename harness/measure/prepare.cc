#include "harness/measure/prepare.h"

#include <cstddef>
#include <map>
#include <utility>

#include "harness/config_table.h"
#include "harness/measure/candidates.h"
#include "harness/workload/op_problem.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

struct ResolvedConfig {
  Config config;
  ConfigRecord record;
  bool extrapolated = false;
};

Unmeasured not_measured(Status status, std::string reason) {
  return {.status = status, .reason = std::move(reason)};
}

// What to record where nobody serves.
Unprepared unserved(std::span<const Candidate> candidates, const std::string& wanted) {
  Unprepared unprepared{.outcome = not_measured(Status::unsupported, "")};
  std::string& reasons = unprepared.outcome.reason;
  std::size_t present = 0;
  for (const Candidate& candidate : candidates) {
    const std::string name(candidate.backend->name());
    if (!reasons.empty()) reasons += "; ";
    reasons.append(name).append(": ");
    if (!candidate.reason.empty()) reasons.append(candidate.reason).append(": ");
    reasons += candidate.why;
    if (candidate.standing == Standing::absent) {
      unprepared.outcome.absent_backends.push_back(name);
    } else {
      unprepared.backend = ++present == 1 ? candidate.backend : nullptr;
    }
  }
  if (reasons.empty()) reasons = "no backend is called " + wanted;
  return unprepared;
}

Unmeasured refused_config(const Refusal& refusal) {
  return not_measured(Status::refused_config,
                      std::string(to_string(refusal.reason)) + ": " + refusal.sentence);
}

// What was not asked for comes from the heuristic; the record names all of it.
std::map<std::string, std::int64_t> whole_config(Config defaults, const Config& asked) {
  for (const auto& [key, value] : asked.values) defaults.values[key] = value;
  return std::move(defaults.values);
}

Expected<ResolvedConfig, Unmeasured> from_file(const fs::path& file, std::string source,
                                               const Problem& problem, const Backend& backend,
                                               const fs::path& root) {
  try {
    const ConfigTable table = load_config_table(file);
    ResolvedConfig resolved;
    resolved.record.stale = check_table(table, problem, backend.device(), backend.toolchain());
    ConfigChoice choice = choose(table, problem.tokens);
    resolved.record.source = std::move(source);
    // Relative where it can be, so that records of two machines compare.
    const fs::path relative = file.lexically_relative(root);
    const bool inside = !relative.empty() && *relative.begin() != "..";
    resolved.record.file = (inside ? relative : file).string();
    resolved.record.key = choice.key;
    resolved.record.values = choice.config.values;
    resolved.extrapolated = choice.extrapolated;
    resolved.config = std::move(choice.config);
    return resolved;
  } catch (const InputError& error) {
    return Unexpected{not_measured(Status::refused_config, error.what())};
  }
}

// The command that makes the file which is missing.
std::string tune_command(const CaseCoordinates& c, const Backend& backend) {
  std::string command = "moegauge tune --model " + c.model + " --scheme " + c.scheme;
  if (c.tp != 1) command += " --tp " + std::to_string(c.tp);
  if (c.ep != 1) command += " --ep " + std::to_string(c.ep);
  return command + " --backend " + std::string(backend.name());
}

Expected<ResolvedConfig, Unmeasured> tuned_config(const CaseCoordinates& c, const Backend& backend,
                                                  const Problem& problem, const fs::path& root) {
  const fs::path file = tuned_config_file(backend, problem);
  std::error_code ignored;
  if (file.empty() || !fs::exists(root / file, ignored)) {
    return Unexpected{not_measured(
        Status::skipped, file.empty() ? "the backend has no tuned files"
                                      : "no tuned file " + file.filename().string() + "; " +
                                            tune_command(c, backend) + " makes one")};
  }
  auto resolved = from_file(root / file, "tuned", problem, backend, root);
  if (resolved) return resolved;
  return Unexpected{not_measured(Status::skipped, "no tuned file: " + resolved.error().reason)};
}

Expected<ResolvedConfig, Unmeasured> resolve_config(const CaseCoordinates& c,
                                                    const Backend& backend, const Problem& problem,
                                                    const fs::path& root) {
  const ConfigRequest request = parse_config_request(c.config, case_id(c));
  const auto as_given = [](const Config& config, const char* source) {
    return ResolvedConfig{config, {.source = source, .values = config.values}, false};
  };
  switch (request.kind) {
    case ConfigRequest::Kind::default_config:
      return as_given(backend.default_config(problem), "default");
    case ConfigRequest::Kind::tuned:
      return tuned_config(c, backend, problem, root);
    case ConfigRequest::Kind::file:
      return from_file(request.file, "file", problem, backend, root);
    case ConfigRequest::Kind::inline_values:
      break;
  }
  return as_given(request.config, "inline");
}

}  // namespace

Expected<PreparedCase, Unprepared> prepare_case(const CaseCoordinates& c, const Problem& problem,
                                                std::span<const Backend* const> backends,
                                                const fs::path& root) {
  PreparedCase prepared;
  prepared.problem = problem;
  prepared.problem.tokens = c.tokens;
  const auto candidates = candidates_for(prepared.problem, backends, c.backend);
  prepared.backend = chosen_of(candidates);
  if (prepared.backend == nullptr) return Unexpected{unserved(candidates, c.backend)};
  const auto unprepared = [&](Unmeasured outcome) {
    return Unexpected{Unprepared{std::move(outcome), prepared.backend}};
  };
  auto resolved = resolve_config(c, *prepared.backend, prepared.problem, root);
  if (!resolved) return unprepared(std::move(resolved).error());
  if (auto refusal = prepared.backend->refuses_config(prepared.problem, resolved->config)) {
    return unprepared(refused_config(*refusal));
  }
  prepared.config = std::move(resolved->config);
  prepared.config_record = std::move(resolved->record);
  prepared.config_record.values =
      whole_config(prepared.backend->default_config(prepared.problem), prepared.config);
  prepared.extrapolated = resolved->extrapolated;
  return prepared;
}

Expected<OpProblem, Unmeasured> op_problem_of(const CaseCoordinates& c, const fs::path& root) {
  auto problem = described_op(c, root);
  if (!problem) {
    return Unexpected{not_measured(Status::unsupported, std::move(problem).error())};
  }
  return std::move(problem).value();
}

Expected<PreparedOp, Unprepared> prepare_op(const CaseCoordinates& c, const OpProblem& problem,
                                            std::span<const Backend* const> backends) {
  const auto candidates = candidates_for(problem, backends, c.backend);
  PreparedOp prepared;
  prepared.problem = problem;
  prepared.backend = chosen_of(candidates);
  if (prepared.backend == nullptr) return Unexpected{unserved(candidates, c.backend)};
  const auto unprepared = [&](Unmeasured outcome) {
    return Unexpected{Unprepared{std::move(outcome), prepared.backend}};
  };
  const ConfigRequest request = parse_config_request(c.config, case_id(c));
  if (request.kind == ConfigRequest::Kind::tuned || request.kind == ConfigRequest::Kind::file) {
    return unprepared(
        not_measured(Status::skipped, "no tuned file: such files are of whole layers"));
  }
  const Config defaults = prepared.backend->default_op_config(problem);
  const bool asked = request.kind == ConfigRequest::Kind::inline_values;
  prepared.config = asked ? request.config : defaults;
  if (auto refusal = prepared.backend->refuses_op_config(problem, prepared.config)) {
    return unprepared(refused_config(*refusal));
  }
  prepared.config_record = {.source = config_source(c.config),
                            .values = whole_config(defaults, prepared.config)};
  return prepared;
}

std::string config_source(const std::string& config) {
  if (config == "default" || config == "tuned") return config;
  return config.starts_with("file:") ? "file" : "inline";
}

std::string device_key(const Device& device) {
  return device.name + "/" + device.arch + "/" + std::to_string(device.units);
}

}  // namespace moegauge
