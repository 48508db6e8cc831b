#include "harness/commands/list.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "harness/commands/options.h"
#include "harness/commands/results.h"
#include "harness/config_table.h"
#include "harness/judge/numbers.h"
#include "harness/judge/policy.h"
#include "harness/judge/text_table.h"
#include "harness/root.h"
#include "harness/suite/own_fields.h"
#include "harness/suite/suite.h"
#include "reference/base/input_error.h"
#include "reference/ops/op.h"
#include "reference/schemes/scheme.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What one kind of list looks like: a row per entry, the same keys in each.
using Rows = std::vector<Json>;

std::vector<fs::path> json_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

Rows list_backends(const Environment& environment, const fs::path&) {
  Rows rows;
  for (const Backend* backend : environment.backends) {
    const Availability availability = backend->availability();
    rows.push_back({{"name", backend->name()},
                    {"available", availability.present ? "yes" : "no"},
                    {"device", availability.present ? backend->device().name : "-"},
                    {"detail", availability.detail}});
  }
  return rows;
}

Rows list_schemes(const Environment&, const fs::path&) {
  Rows rows;
  for (const std::string_view name : scheme_names()) {
    const auto scheme = make_scheme(name);
    const ErrorLimits limits = scheme->error_limits(scheme->traits().only.value_or(Dtype::bf16),
                                                    /*reduced_accumulation=*/false);
    rows.push_back({{"name", name},
                    {"options", scheme_options(name)},
                    {"config_dtype", scheme->config_dtype()},
                    {"error_limit", format_error(limits.relative_l2)},
                    {"worst_token_limit", format_error(limits.worst_token)}});
  }
  return rows;
}

std::string in_one_cell(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// "block_size 1..65536 [64], layout sorted|batched [sorted]": values, and what holds without one.
std::string text_of(const OpField& field) {
  std::string words;
  for (const std::string& word : field.words) words += (words.empty() ? "" : "|") + word;
  const auto* number = std::get_if<std::int64_t>(&field.fallback);
  if (number != nullptr) words = std::to_string(field.low) + ".." + std::to_string(field.high);
  return field.name + " " + words + " [" +
         (number != nullptr ? std::to_string(*number) : std::get<std::string>(field.fallback)) +
         "]";
}

Rows list_ops(const Environment&, const fs::path&) {
  std::vector<std::string> names = {CaseCoordinates{}.op};
  for (const Op* op : all_ops()) names.emplace_back(op->name());
  Rows rows;
  for (const std::string& name : names) {
    std::string fields;
    for (const OpField& field : own_fields(name)) {
      fields += (fields.empty() ? "" : ", ") + text_of(field);
    }
    rows.push_back({{"name", name}, {"fields", fields}});
  }
  return rows;
}

Rows list_models(const Environment&, const fs::path& root) {
  Rows rows;
  for (const std::string& name : model_names(root)) {
    const Model model = load_model(name, root);
    rows.push_back({{"name", name},
                    {"E", model.layer.experts},
                    {"top_k", model.layer.top_k},
                    {"K", model.layer.hidden_size},
                    {"N", model.layer.intermediate_size},
                    {"routing", model.routing_rule},
                    {"served_as", in_one_cell(model.served_as)}});
  }
  return rows;
}

Rows list_suites(const Environment&, const fs::path& root) {
  Rows rows;
  for (const fs::path& file : json_files(root / "suites")) {
    const Suite suite = load_suite(file, root);
    rows.push_back({{"name", file.stem().string()},
                    {"cases", suite.cases.size()},
                    {"description", suite.description}});
  }
  return rows;
}

Rows list_policies(const Environment&, const fs::path& root) {
  Rows rows;
  for (const fs::path& file : json_files(root / "suites" / "policies")) {
    const Policy policy = load_policy(file);
    rows.push_back({{"name", policy.name},
                    {"strict", policy.strict ? "yes" : "no"},
                    {"controls", policy.controls ? "yes" : "no"},
                    {"known_issues", policy.known_issues.size()},
                    {"description", policy.description}});
  }
  return rows;
}

Rows list_configs(const Environment& environment, const fs::path& root) {
  Rows rows;
  for (const Backend* backend : environment.backends) {
    if (backend->config_folder().empty()) continue;
    for (const fs::path& file : json_files(root / backend->config_folder())) {
      const ConfigTable table = load_config_table(file);
      rows.push_back({{"backend", backend->name()},
                      {"batch_sizes", std::to_string(table.entries.begin()->first) + ".." +
                                          std::to_string(table.entries.rbegin()->first)},
                      {"entries", table.entries.size()},
                      {"file", file.filename().string()},
                      {"warnings", in_one_cell(table.warnings)}});
    }
  }
  return rows;
}

struct Kind {
  std::string_view name;
  Rows (*list)(const Environment& environment, const fs::path& root);
};
constexpr std::array kinds = {
    Kind{"backends", list_backends}, Kind{"schemes", list_schemes}, Kind{"models", list_models},
    Kind{"suites", list_suites},     Kind{"configs", list_configs}, Kind{"policies", list_policies},
    Kind{"ops", list_ops},
};

std::string cell(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string table_of(const Rows& rows) {
  std::vector<Align> columns;
  std::vector<std::string> head;
  for (const auto& [key, value] : rows.front().items()) {
    columns.push_back(value.is_number() ? Align::right : Align::left);
    head.push_back(key);
  }
  TextTable table(columns);
  table.add(head);
  for (const Json& row : rows) {
    std::vector<std::string> cells;
    for (const auto& [key, value] : row.items()) cells.push_back(cell(value));
    table.add(cells);
  }
  return table.str();
}

struct ListOptions {
  std::string kind;
  bool json = false;
};

int list(const ListOptions& o, const Environment& environment) {
  const auto kind = std::ranges::find(kinds, o.kind, &Kind::name);
  const Rows rows = kind->list(environment, find_root());
  if (o.json) {
    environment.out << strict_json(Json(rows)) << '\n';
  } else if (!rows.empty()) {
    environment.out << table_of(rows);
  }
  if (!rows.empty()) return exit_ok;
  environment.err << "moegauge: there are no " << o.kind << '\n';
  return exit_no_verdict;
}

}  // namespace

Action add_list(CLI::App& subcommand) {
  auto options = std::make_shared<ListOptions>();
  std::vector<std::string> names;
  names.reserve(std::size(kinds));
  for (const Kind& kind : kinds) names.emplace_back(kind.name);
  subcommand
      .add_option("KIND", options->kind,
                  "backends, schemes, models, suites, configs, policies or ops")
      ->required()
      ->check(CLI::IsMember(names));
  add_json_flag(subcommand, options->json, "a table");
  subcommand.footer("Exit codes: 0; 2 bad usage or a shipped file that cannot be read; 4 none.");
  return [options](const Environment& environment) { return list(*options, environment); };
}

}  // namespace moegauge
