#include "harness/suite/case_fields.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "harness/json/nearest.h"
#include "harness/suite/own_fields.h"
#include "reference/base/input_error.h"
#include "reference/inputs.h"
#include "reference/ops/op.h"
#include "reference/schemes/scheme.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> cache_names = {"cold_weights", "cold", "hot"};
const std::vector<std::string> launch_names = {"graph", "eager"};
constexpr std::int64_t max_ranks = 4096;

// A file named in the suite, relative to the current folder.
std::string existing_file(const JsonCursor& value, const std::string& path,
                          const SuiteContext& context) {
  const fs::path file = (context.folder / path).lexically_normal();
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    value.fail("no file " + in_quotes(file.string()), "give a path relative to the suite's folder");
  }
  return file.string();
}

std::string read_model_name(const JsonCursor& value, const SuiteContext& context) {
  std::string name = value.text();
  if (name.find('/') == std::string::npos && !name.ends_with(".json")) return name;
  const std::string path = existing_file(value, name, context);
  const bool still_a_path = path.find('/') != std::string::npos || path.ends_with(".json");
  return still_a_path ? path : "./" + path;  // a folder's bare name would be a model's
}

std::string read_config(const JsonCursor& value, const SuiteContext& context) {
  if (value.is_object()) {
    Config config;
    for (const auto& [key, entry] : value.members())
      config.values[key] = entry.integer(0, INT32_MAX);
    if (config.values.empty()) value.fail("an empty config", "write \"default\"");
    return inline_config(config);
  }
  if (!value.is_string()) value.fail_type("default, tuned, file:PATH or an object");
  std::string text = value.text();
  if (text.starts_with('{')) value.fail("an object written as a string", "write the object itself");
  ConfigRequest request;
  try {
    request = parse_config_request(text, "");
  } catch (const InputError&) {
    parse_config_request(text, value.place());  // the same again, now that the place is needed
  }
  if (request.kind != ConfigRequest::Kind::file) return text;
  return "file:" + existing_file(value, request.file.string(), context);
}

std::string read_scheme(const JsonCursor& value) {
  std::string text = value.text();
  if (make_scheme(text) == nullptr) {
    const UnknownName unknown = unknown_scheme(text);
    value.fail(unknown.wrong, unknown.right);
  }
  return text;
}

std::string read_routing(const JsonCursor& value, const SuiteContext& context) {
  std::string text = value.text();
  const auto law = routing_law_named(text);
  if (!law) value.fail(law.error().wrong, "write " + law.error().right);
  if (*law) return text;
  std::error_code ignored;
  if (fs::exists(context.folder / text, ignored)) return existing_file(value, text, context);
  const UnknownName unknown = unknown_routing(text);
  value.fail(unknown.wrong, unknown.right);
}

std::string read_inputs(const JsonCursor& value, const SuiteContext& context) {
  std::string text = value.text();
  constexpr std::string_view prefix = "file:";
  if (!text.starts_with(prefix)) return listed(value, input_names(), "inputs");
  return std::string(prefix) + existing_file(value, text.substr(prefix.size()), context);
}

void add_layer_field(const std::string& name, const JsonCursor& value, CaseCoordinates& c) {
  Model model;
  read_layer_field(name, value, model);
  nlohmann::json fields =
      c.fields.empty() ? nlohmann::json::object() : nlohmann::json::parse(c.fields);
  fields[name] = nlohmann::json(value.json());
  c.fields = fields.dump();
}

std::vector<CaseField> make_fields() {
  using C = CaseCoordinates;
  using J = JsonCursor;
  using X = SuiteContext;
  std::vector<CaseField> all = {
      {"op", [](const J& v, const X&, C& c) { c.op = listed(v, op_names(), "op"); }},
      {"model", [](const J& v, const X& x, C& c) { c.model = read_model_name(v, x); }},
      {"layer", [](const J& v, const X&, C& c) { c.layer = v.integer(0, max_checkpoint_layers); }},
  };
  for (const std::string& name : layer_field_names()) {
    all.push_back({name, [name](const J& v, const X&, C& c) { add_layer_field(name, v, c); }});
  }
  const std::vector<CaseField> others = {
      {"tp", [](const J& v, const X&, C& c) { c.tp = v.integer(1, max_ranks); }},
      {"ep", [](const J& v, const X&, C& c) { c.ep = v.integer(1, max_ranks); }},
      {"scheme", [](const J& v, const X&, C& c) { c.scheme = read_scheme(v); }},
      {"inputs", [](const J& v, const X& x, C& c) { c.inputs = read_inputs(v, x); }},
      {"routing", [](const J& v, const X& x, C& c) { c.routing = read_routing(v, x); }},
      {"cache", [](const J& v, const X&, C& c) { c.cache = listed(v, cache_names, "cache"); }},
      {"launch", [](const J& v, const X&, C& c) { c.launch = listed(v, launch_names, "launch"); }},
      {"tokens", [](const J& v, const X&, C& c) { c.tokens = v.integer(0, max_tokens); }},
      {"backend", [](const J& v, const X&, C& c) { c.backend = v.text(); }},
      {"config", [](const J& v, const X& x, C& c) { c.config = read_config(v, x); }},
  };
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

}  // namespace

const std::vector<std::string>& op_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {CaseCoordinates{}.op};
    for (const Op* op : all_ops()) all.emplace_back(op->name());
    return all;
  }();
  return names;
}
const std::vector<std::string>& input_names() {
  static const std::vector<std::string> names = {"gaussian", "heavy_tail", "uniform", "degenerate",
                                                 "exact"};
  return names;
}

std::string listed(const JsonCursor& value, const std::vector<std::string>& names,
                   std::string_view what) {
  return names[value.one_of(names, what)];
}

const std::vector<CaseField>& case_fields() {
  static const std::vector<CaseField> all = make_fields();
  return all;
}

std::vector<std::string> case_field_names() {
  std::vector<std::string> names;
  for (const auto& field : case_fields()) names.push_back(field.key);
  for (const std::string& op : op_names()) {
    for (const OpField& field : own_fields(op)) names.push_back(field.name);
  }
  // Several ops have a field of one name.
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

UnknownName unknown_scheme(const std::string& text) {
  const auto families = scheme_names();
  for (const auto family : families) {
    if (!text.starts_with(std::string(family) + "_")) continue;
    const std::string options(scheme_options(family));
    return {"unknown options in scheme " + in_quotes(text),
            std::string(family) + (options.empty() ? " takes none" : " takes " + options)};
  }
  const std::vector<std::string> names(families.begin(), families.end());
  return {"unknown scheme " + in_quotes(text), suggestion(text, names)};
}

UnknownName unknown_routing(const std::string& text) {
  static const std::vector<std::string> laws = {"uniform", "balanced", "single", "zipf",
                                                "dirichlet"};
  const std::string guess = suggestion(text.substr(0, text.find(':')), laws);
  return {"unknown routing " + in_quotes(text),
          (guess.starts_with("did you mean") ? guess + "; " : "") +
              "write uniform, balanced, single, zipf:S, dirichlet:A or the path of a trace file"};
}

}  // namespace moegauge
