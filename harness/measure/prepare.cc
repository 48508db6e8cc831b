#include "harness/measure/prepare.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "harness/config_table.h"
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
  return {.status = status, .reason = std::move(reason), .check = std::nullopt};
}

// Why `backend` cannot serve the problem, or nothing.
std::optional<std::string> cannot_serve(const Backend& backend, const Problem& problem) {
  const Availability availability = backend.availability();
  if (!availability.present) return availability.detail;
  if (auto refusal = backend.refuses(problem)) {
    return std::string(to_string(refusal->reason)) + ": " + refusal->sentence;
  }
  return std::nullopt;
}

Expected<const Backend*, Unmeasured> find_backend(const std::string& wanted, const Problem& problem,
                                                  std::span<const Backend* const> backends) {
  std::string reasons;
  for (const Backend* backend : backends) {
    if (wanted != "auto" && backend->name() != wanted) continue;
    const auto reason = cannot_serve(*backend, problem);
    if (!reason) return backend;
    reasons += (reasons.empty() ? "" : "; ") + std::string(backend->name()) + ": " + *reason;
  }
  if (reasons.empty()) reasons = "no backend is called " + wanted;
  return Unexpected{not_measured(Status::unsupported, reasons)};
}

Expected<ResolvedConfig, Unmeasured> from_file(const fs::path& file, std::string source,
                                               const Problem& problem, const Device& device,
                                               const fs::path& root) {
  try {
    const ConfigTable table = load_config_table(file);
    ResolvedConfig resolved;
    resolved.record.stale = check_metadata(table, problem, device);
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

Expected<ResolvedConfig, Unmeasured> tuned_config(const Backend& backend, const Problem& problem,
                                                  const fs::path& root) {
  const Device device = backend.device();
  const std::string name = config_file_name(problem.layer, *problem.scheme, device.tuned_name());
  const fs::path file = root / backend.config_folder() / name;
  std::error_code ignored;
  if (backend.config_folder().empty() || !fs::exists(file, ignored)) {
    return Unexpected{not_measured(Status::skipped, "no tuned file " + name)};
  }
  return from_file(file, "tuned", problem, device, root);
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
      return tuned_config(backend, problem, root);
    case ConfigRequest::Kind::file:
      return from_file(request.file, "file", problem, backend.device(), root);
    case ConfigRequest::Kind::inline_values:
      break;
  }
  return as_given(request.config, "inline");
}

}  // namespace

Problem problem_of(const CaseCoordinates& c, const fs::path& root) {
  Problem problem;
  problem.scheme = make_scheme(c.scheme);
  if (!problem.scheme) {
    throw InputError(case_id(c), "no scheme is called " + c.scheme, "see moegauge list schemes");
  }
  problem.layer = rank_layer(load_model(c.model, root), c.tp, c.ep);
  if (const auto only = problem.scheme->traits().only) problem.layer.dtype = *only;
  problem.tokens = c.tokens;
  return problem;
}

Expected<PreparedCase, Unmeasured> prepare_case(const CaseCoordinates& c, const Problem& problem,
                                                std::span<const Backend* const> backends,
                                                const fs::path& root) {
  if (c.op != "fused_moe") {
    return Unexpected{not_measured(Status::unsupported, "op " + c.op +
                                                            " has no measurement here; "
                                                            "fused_moe has")};
  }
  PreparedCase prepared;
  prepared.problem = problem;
  prepared.problem.tokens = c.tokens;
  auto backend = find_backend(c.backend, prepared.problem, backends);
  if (!backend) return Unexpected{std::move(backend).error()};
  prepared.backend = *backend;
  auto resolved = resolve_config(c, *prepared.backend, prepared.problem, root);
  if (!resolved) return Unexpected{std::move(resolved).error()};
  if (auto refusal = prepared.backend->refuses_config(prepared.problem, resolved->config)) {
    return Unexpected{not_measured(Status::refused_config, std::string(to_string(refusal->reason)) +
                                                               ": " + refusal->sentence)};
  }
  prepared.config = std::move(resolved->config);
  prepared.config_record = std::move(resolved->record);
  // What was not asked for comes from the heuristic; the record names all of it.
  Config whole = prepared.backend->default_config(prepared.problem);
  for (const auto& [key, value] : prepared.config.values) whole.values[key] = value;
  prepared.config_record.values = std::move(whole.values);
  prepared.extrapolated = resolved->extrapolated;
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
