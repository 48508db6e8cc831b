#include "harness/commands/preflight.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "harness/config_table.h"
#include "harness/json/cursor.h"
#include "harness/measure/candidates.h"
#include "harness/measure/prepare.h"
#include "harness/workload/workload.h"
#include "reference/base/input_error.h"
#include "reference/inputs.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

struct UnknownKey {
  std::string key;
  std::string sentence;  // the backend's: what is wrong and what it knows
};

std::optional<UnknownKey> unknown_key(const Backend& backend, const Problem& problem,
                                      const Config& config) {
  for (const auto& [key, value] : config.values) {
    const auto refusal = backend.refuses_config(problem, {.values = {{key, value}}});
    if (refusal && refusal->reason == RefusalReason::config_unknown_key) {
      return UnknownKey{key, refusal->sentence};
    }
  }
  return std::nullopt;
}

void check_entries(const ConfigTable& table, const Backend& backend, const Problem& problem) {
  for (const auto& [tokens, config] : table.entries) {
    const auto unknown = unknown_key(backend, problem, config);
    if (!unknown) continue;
    const auto document = JsonDocument::read(table.file);
    JsonCursor(document).at(std::to_string(tokens)).at(unknown->key).fail(unknown->sentence, "");
  }
}

void check_table_file(const fs::path& file, const Backend& backend, const Problem& problem) {
  const ConfigTable table = load_config_table(file);
  check_table(table, problem, backend.device());
  check_entries(table, backend, problem);
}

// Fails at the place in the suite where an inline config is written.
void fail_inline(const fs::path& suite, const std::string& config, const UnknownKey& unknown) {
  const auto document = JsonDocument::read(suite);
  const JsonCursor top(document);
  std::vector<JsonCursor> entries = top.at("cases").items();
  if (const auto defaults = top.find("defaults")) entries.push_back(*defaults);
  for (const JsonCursor& entry : entries) {
    const auto field = entry.find("config");
    if (!field) continue;
    for (const JsonCursor& value : field->is_array() ? field->items() : std::vector{*field}) {
      if (!value.is_object()) continue;
      Config written;
      for (const auto& [key, number] : value.members()) {
        written.values[key] = number.integer(0, INT32_MAX);
      }
      if (inline_config(written) == config) value.at(unknown.key).fail(unknown.sentence, "");
    }
  }
  throw InputError(suite.string(), unknown.sentence, "");
}

void check_config(const CaseCoordinates& c, const Problem& problem, const Backend& backend,
                  const fs::path& suite, const fs::path& root) {
  const ConfigRequest request = parse_config_request(c.config, case_id(c));
  switch (request.kind) {
    case ConfigRequest::Kind::default_config:
      return;
    case ConfigRequest::Kind::tuned: {
      const fs::path file = tuned_config_file(backend, problem);
      std::error_code ignored;
      if (file.empty() || !fs::exists(root / file, ignored)) return;
      return check_table_file(root / file, backend, problem);
    }
    case ConfigRequest::Kind::file:
      return check_table_file(request.file, backend, problem);
    case ConfigRequest::Kind::inline_values:
      if (const auto unknown = unknown_key(backend, problem, request.config)) {
        fail_inline(suite, c.config, *unknown);
      }
      return;
  }
}

bool takes_tensors(const CaseCoordinates& c) { return replayed_file(c) || c.layer >= 0; }

// One of each kind of cases that agree in what is looked at here: not in batch size and the like.
std::vector<CaseCoordinates> kinds_of(const std::vector<CaseCoordinates>& cases) {
  std::vector<CaseCoordinates> kinds;
  std::set<std::string> seen;
  for (CaseCoordinates c : cases) {
    c.op = c.cache = c.launch = "";
    if (!takes_tensors(c)) c.inputs = "";
    if (!replayed_file(c)) c.tokens = 1;
    if (seen.insert(case_id(c)).second) kinds.push_back(std::move(c));
  }
  return kinds;
}

}  // namespace

void check_inputs(const std::vector<CaseCoordinates>& cases, const fs::path& suite,
                  std::span<const Backend* const> backends, const fs::path& root) {
  for (const CaseCoordinates& c : kinds_of(cases)) {
    const Problem problem = problem_of(c, root);
    parse_routing_law(c.routing, problem.layer);
    if (takes_tensors(c)) make_workload(c, problem, root, {});
    const Backend* backend = chosen_of(candidates_for(problem, backends, c.backend));
    if (backend != nullptr) check_config(c, problem, *backend, suite, root);
  }
}

std::vector<NamedFile> files_read(const std::vector<CaseCoordinates>& cases, const fs::path& suite,
                                  std::span<const Backend* const> backends, const fs::path& root) {
  std::map<fs::path, std::string> files = {{suite, "the suite that is run"}};
  for (const CaseCoordinates& c : kinds_of(cases)) {
    if (c.model != replay_model_name) {
      files.emplace(model_file(c.model, root), "a model of the suite");
    }
    if (const auto file = replayed_file(c)) files.emplace(*file, "a file of tensors");
    files.emplace(c.routing, "a trace of the suite");  // or a law, which no file is called
    const ConfigRequest request = parse_config_request(c.config, case_id(c));
    if (request.kind == ConfigRequest::Kind::file) files.emplace(request.file, "a config file");
    if (request.kind != ConfigRequest::Kind::tuned) continue;
    const Problem problem = problem_of(c, root);
    for (const Backend* backend : backends) {
      const fs::path file = tuned_config_file(*backend, problem);
      if (!file.empty()) files.emplace(root / file, "a tuned config file");
    }
  }
  std::vector<NamedFile> named;
  for (const auto& [file, role] : files) named.push_back({role, file});
  return named;
}

}  // namespace moegauge
