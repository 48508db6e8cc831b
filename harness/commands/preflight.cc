#include "harness/commands/preflight.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "harness/config_table.h"
#include "harness/json/cursor.h"
#include "harness/measure/candidates.h"
#include "harness/measure/prepare.h"
#include "harness/suite/own_fields.h"
#include "harness/tensors/checkpoint.h"
#include "harness/workload/op_tensors.h"
#include "harness/workload/workload.h"
#include "reference/base/input_error.h"
#include "reference/inputs.h"
#include "reference/ops/op.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

struct UnknownKey {
  std::string key;
  std::string sentence;  // the backend's: what is wrong and what it knows
};

// A backend's answer to a config, for the layer or the op that is asked about.
using RefusesConfig = std::function<std::optional<Refusal>(const Config& config)>;

RefusesConfig refuses_of(const Backend& backend, const Problem& problem) {
  return [&](const Config& config) { return backend.refuses_config(problem, config); };
}

std::optional<UnknownKey> unknown_key(const RefusesConfig& refuses, const Config& config) {
  for (const auto& [key, value] : config.values) {
    const auto refusal = refuses({.values = {{key, value}}});
    if (refusal && refusal->reason == RefusalReason::config_unknown_key) {
      return UnknownKey{key, refusal->sentence};
    }
  }
  return std::nullopt;
}

void check_entries(const ConfigTable& table, const Backend& backend, const Problem& problem) {
  for (const auto& [tokens, config] : table.entries) {
    const auto unknown = unknown_key(refuses_of(backend, problem), config);
    if (!unknown) continue;
    const auto document = JsonDocument::read(table.file);
    JsonCursor(document).at(std::to_string(tokens)).at(unknown->key).fail(unknown->sentence, "");
  }
}

// Found by its name, which says neither hidden size nor top_k: another layer's may have the name.
void check_tuned_file(const fs::path& file, const Backend& backend, const Problem& problem) {
  const ConfigTable table = load_config_table(file);
  try {
    check_table(table, problem, backend.device());
  } catch (const InputError&) {
    return;
  }
  check_entries(table, backend, problem);
}

void check_table_file(const fs::path& file, const Backend& backend, const Problem& problem) {
  const ConfigTable table = load_config_table(file);
  check_table(table, problem, backend.device());
  check_entries(table, backend, problem);
}

// Every value of a field in the suite, of lists each.
std::vector<JsonCursor> written_values(const JsonCursor& top, const std::string& field) {
  std::vector<JsonCursor> entries = top.at("cases").items(), values;
  if (const auto defaults = top.find("defaults")) entries.push_back(*defaults);
  for (const JsonCursor& entry : entries) {
    const auto found = entry.find(field);
    if (!found) continue;
    if (!found->is_array()) values.push_back(*found);
    if (found->is_array()) std::ranges::copy(found->items(), std::back_inserter(values));
  }
  return values;
}

// The same error, at the place in the suite that asks for the file that it is about; where it is
// about none, as it is.
[[noreturn]] void fail_where_asked(const CaseCoordinates& c, const fs::path& suite,
                                   const InputError& error) {
  const std::string what = error.what();
  const auto document = JsonDocument::read(suite);
  for (const char* field : {"routing", "config", "inputs"}) {
    for (const JsonCursor& value : written_values(JsonCursor(document), field)) {
      if (!value.is_string()) continue;
      std::string text = value.string();
      if (text.starts_with("file:")) text.erase(0, 5);
      const std::string file = (suite.parent_path() / text).lexically_normal().string();
      const bool of_case =
          c.routing == file || c.config == "file:" + file || c.inputs == "file:" + file;
      if (of_case && what.starts_with(file + ":")) value.fail(what, "");
    }
  }
  throw error;
}

// Fails at the place in the suite where an inline config is written.
[[noreturn]] void fail_inline(const fs::path& suite, const std::string& config,
                              const UnknownKey& unknown) {
  const auto document = JsonDocument::read(suite);
  const JsonCursor top(document);
  for (const JsonCursor& value : written_values(top, "config")) {
    if (!value.is_object()) continue;
    Config written;
    for (const auto& [key, number] : value.members()) {
      written.values[key] = number.integer(0, INT32_MAX);
    }
    if (inline_config(written) == config) value.at(unknown.key).fail(unknown.sentence, "");
  }
  throw InputError(suite.string(), unknown.sentence, "");
}

// Keys of an inline config; of others there is nothing to say here.
void check_inline(const CaseCoordinates& c, const RefusesConfig& refuses, const fs::path& suite) {
  const ConfigRequest request = parse_config_request(c.config, case_id(c));
  if (request.kind != ConfigRequest::Kind::inline_values) return;
  if (const auto unknown = unknown_key(refuses, request.config)) {
    fail_inline(suite, c.config, *unknown);
  }
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
      return check_tuned_file(root / file, backend, problem);
    }
    case ConfigRequest::Kind::file:
      return check_table_file(request.file, backend, problem);
    case ConfigRequest::Kind::inline_values:
      return check_inline(c, refuses_of(backend, problem), suite);
  }
}

bool takes_tensors(const CaseCoordinates& c) { return replayed_file(c) || c.layer >= 0; }

// One of each kind of cases that agree in what is looked at here: not in batch size and the like.
std::vector<CaseCoordinates> kinds_of(const std::vector<CaseCoordinates>& cases) {
  std::vector<CaseCoordinates> kinds;
  std::set<std::string> seen;
  for (CaseCoordinates c : cases) {
    c.cache = c.launch = "";
    if (!takes_tensors(c)) c.inputs = "";
    if (!replayed_file(c)) c.tokens = 1;
    if (seen.insert(case_id(c)).second) kinds.push_back(std::move(c));
  }
  return kinds;
}

void check_layer(const CaseCoordinates& c, const fs::path& suite,
                 std::span<const Backend* const> backends, const fs::path& root) {
  const Problem problem = problem_of(c, root);
  parse_routing_law(c.routing, routed_part(problem.layer, fused_experts(c, model_of(c, root))));
  if (takes_tensors(c)) make_workload(c, problem, root, {});
  const Backend* backend = chosen_of(candidates_for(problem, backends, c.backend));
  if (backend != nullptr) check_config(c, problem, *backend, suite, root);
}

// What is in the file contradicts itself nowhere.
void check_given(const CaseCoordinates& c, const OpProblem& problem) {
  const Op& op = *find_op(c.op);
  const OpTensors tensors(c, {});
  if (tensors.given_inputs(problem) == GivenRows::none) return;
  try {
    op.check(problem, tensors.inputs(op, problem, tensors.draw(c.routing, problem, 0)));
  } catch (const InputError& error) {
    throw InputError(replayed_file(c)->string(), error.what(), "");
  }
}

// Where the op is not defined, its record says so.
void check_op(const CaseCoordinates& c, const fs::path& suite,
              std::span<const Backend* const> backends, const fs::path& root) {
  const auto problem = op_problem_of(c, root);
  if (!problem) return;
  parse_routing_law(c.routing, problem->layer);
  if (replayed_file(c)) check_given(c, *problem);
  const Backend* backend = chosen_of(candidates_for(*problem, backends, c.backend));
  if (backend == nullptr) return;
  check_inline(
      c, [&](const Config& config) { return backend->refuses_op_config(*problem, config); }, suite);
}

void add_weights(const fs::path& folder, std::map<fs::path, std::string>& files) {
  for (const fs::path& file : checkpoint_files(folder)) files.emplace(file, "a file of weights");
}

std::vector<NamedFile> named(const std::map<fs::path, std::string>& files) {
  std::vector<NamedFile> all;
  all.reserve(files.size());
  for (const auto& [file, role] : files) all.push_back({role, file});
  return all;
}

}  // namespace

void check_inputs(const std::vector<CaseCoordinates>& cases, const fs::path& suite,
                  std::span<const Backend* const> backends, const fs::path& root) {
  for (const CaseCoordinates& c : kinds_of(cases)) {
    try {
      find_op(c.op) != nullptr ? check_op(c, suite, backends, root)
                               : check_layer(c, suite, backends, root);
    } catch (const InputError& error) {
      fail_where_asked(c, suite, error);
    }
  }
}

std::vector<NamedFile> files_read(const std::vector<CaseCoordinates>& cases, const fs::path& suite,
                                  std::span<const Backend* const> backends, const fs::path& root) {
  std::map<fs::path, std::string> files = {{suite, "the suite that is run"}};
  for (const CaseCoordinates& c : kinds_of(cases)) {
    if (c.model != replay_model_name) {
      files.emplace(model_file(c.model, root), "a model of the suite");
    }
    if (c.layer >= 0) add_weights(checkpoint_folder(c), files);
    if (const auto file = replayed_file(c)) files.emplace(*file, "a file of tensors");
    files.emplace(c.routing, "a trace of the suite");  // or a law, which no file is called
    const ConfigRequest request = parse_config_request(c.config, case_id(c));
    if (request.kind == ConfigRequest::Kind::file) files.emplace(request.file, "a config file");
    if (request.kind != ConfigRequest::Kind::tuned || find_op(c.op) != nullptr) continue;
    const Problem problem = problem_of(c, root);
    for (const Backend* backend : backends) {
      const fs::path file = tuned_config_file(*backend, problem);
      if (!file.empty()) files.emplace(root / file, "a tuned config file");
    }
  }
  return named(files);
}

std::vector<NamedFile> weights_beside(const fs::path& model) {
  std::map<fs::path, std::string> files;
  if (model.filename() == "config.json") {
    const fs::path folder = model.parent_path();
    add_weights(folder.empty() ? "." : folder, files);
  }
  return named(files);
}

}  // namespace moegauge
