// Suite files, moegauge.suite/1, and their expansion into cases.
#include "harness/suite/suite.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "harness/json/cursor.h"
#include "harness/json/nearest.h"
#include "harness/suite/own_fields.h"
#include "harness/suite/replayed_tokens.h"
#include "reference/base/input_error.h"
#include "reference/inputs.h"
#include "reference/ops/op.h"
#include "reference/schemes/scheme.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

// The whole layer, which is the default, then the single ops.
const std::vector<std::string>& op_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {CaseCoordinates{}.op};
    for (const Op* op : all_ops()) all.emplace_back(op->name());
    return all;
  }();
  return names;
}
const std::vector<std::string> input_names = {"gaussian", "heavy_tail", "uniform", "degenerate",
                                              "exact"};
const std::vector<std::string> cache_names = {"cold_weights", "cold", "hot"};
const std::vector<std::string> launch_names = {"graph", "eager"};
constexpr std::int64_t max_ranks = 4096;

// Where relative paths of a suite start, and what its models are.
struct Context {
  const fs::path& folder;
  const fs::path& root;
};

std::string listed(const JsonCursor& value, const std::vector<std::string>& names,
                   std::string_view what) {
  return names[value.one_of(names, what)];
}

// A file named in the suite, relative to the current folder.
std::string existing_file(const JsonCursor& value, const std::string& path,
                          const Context& context) {
  const fs::path file = (context.folder / path).lexically_normal();
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    value.fail("no file " + in_quotes(file.string()), "give a path relative to the suite's folder");
  }
  return file.string();
}

std::string read_model_name(const JsonCursor& value, const Context& context) {
  const std::string name = value.text();
  if (name.find('/') == std::string::npos && !name.ends_with(".json")) return name;
  const std::string path = existing_file(value, name, context);
  const bool still_a_path = path.find('/') != std::string::npos || path.ends_with(".json");
  return still_a_path ? path : "./" + path;  // a folder's bare name would be a model's
}

std::string read_config(const JsonCursor& value, const Context& context) {
  if (value.is_object()) {
    Config config;
    for (const auto& [key, entry] : value.members())
      config.values[key] = entry.integer(0, INT32_MAX);
    if (config.values.empty()) value.fail("an empty config", "write \"default\"");
    return inline_config(config);
  }
  if (!value.is_string()) value.fail_type("default, tuned, file:PATH or an object");
  const std::string text = value.text();
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
  const std::string text = value.text();
  if (make_scheme(text) == nullptr) {
    const UnknownName unknown = unknown_scheme(text);
    value.fail(unknown.wrong, unknown.right);
  }
  return text;
}

std::string read_routing(const JsonCursor& value, const Context& context) {
  const std::string text = value.text();
  const auto law = routing_law_named(text);
  if (!law) value.fail(law.error().wrong, "write " + law.error().right);
  if (*law) return text;
  std::error_code ignored;
  if (fs::exists(context.folder / text, ignored)) return existing_file(value, text, context);
  const UnknownName unknown = unknown_routing(text);
  value.fail(unknown.wrong, unknown.right);
}

std::string read_inputs(const JsonCursor& value, const Context& context) {
  const std::string text = value.text();
  constexpr std::string_view prefix = "file:";
  if (!text.starts_with(prefix)) return listed(value, input_names, "inputs");
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

// One coordinate: how its key is spelt and one value of it stored.
struct Field {
  std::string key;
  std::function<void(const JsonCursor&, const Context&, CaseCoordinates&)> read;
};

// In the order in which products run, the last fastest.
std::vector<Field> make_fields() {
  using C = CaseCoordinates;
  using J = JsonCursor;
  using X = Context;
  std::vector<Field> all = {
      {"op", [](const J& v, const X&, C& c) { c.op = listed(v, op_names(), "op"); }},
      {"model", [](const J& v, const X& x, C& c) { c.model = read_model_name(v, x); }},
      {"layer", [](const J& v, const X&, C& c) { c.layer = v.integer(0, max_checkpoint_layers); }},
  };
  for (const std::string& name : layer_field_names()) {
    all.push_back({name, [name](const J& v, const X&, C& c) { add_layer_field(name, v, c); }});
  }
  const std::vector<Field> others = {
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

const std::vector<Field>& fields() {
  static const std::vector<Field> all = make_fields();
  return all;
}

std::vector<std::string> field_names() {
  std::vector<std::string> names;
  for (const auto& field : fields()) names.push_back(field.key);
  for (const std::string& op : op_names()) {
    for (const OpField& field : own_fields(op)) names.push_back(field.name);
  }
  return names;
}

// The values of one field: a list, or one value.
std::vector<JsonCursor> values_of(const JsonCursor& value) {
  if (!value.is_array()) return {value};
  auto items = value.items();
  if (items.empty()) value.fail("an empty list", "give at least one value");
  return items;
}

bool takes_a_file(const CaseCoordinates& c) { return replayed_file(c).has_value(); }

constexpr std::size_t max_cases = 1'000'000;

OpValue read_op_value(const JsonCursor& value, const OpField& field) {
  if (field.words.empty()) return value.integer(field.low, field.high);
  return listed(value, field.words, field.name);
}

// Refuses fields of other ops; those of `defaults` are for the ops that have them.
void require_own_fields(const JsonCursor& entry, const CaseCoordinates& c) {
  std::vector<std::string> own;
  for (const OpField& field : own_fields(c.op)) own.push_back(field.name);
  for (const std::string& other : op_names()) {
    for (const OpField& field : own_fields(other)) {
      const auto found = entry.find(field.name);
      if (!found || std::ranges::find(own, field.name) != own.end()) continue;
      found->fail("the op " + c.op + " has no field " + in_quotes(field.name),
                  own.empty() ? "it has none of its own" : "it has " + joined(own));
    }
  }
}

// The products of one case's op fields, in the op's order.
std::vector<CaseCoordinates> expand_op_fields(const CaseCoordinates& c, const JsonCursor& entry,
                                              const std::optional<JsonCursor>& defaults) {
  require_own_fields(entry, c);
  std::vector<OpFields> products = {OpFields{}};
  for (const OpField& field : own_fields(c.op)) {
    auto found = entry.find(field.name);
    if (!found && defaults) found = defaults->find(field.name);
    std::vector<OpValue> values = {field.fallback};
    if (found) {
      values.clear();
      for (const auto& value : values_of(*found)) values.push_back(read_op_value(value, field));
    }
    std::vector<OpFields> longer;
    for (const OpFields& partial : products) {
      for (const OpValue& value : values) {
        longer.push_back(partial);
        if (value != field.fallback) longer.back()[field.name] = value;
      }
    }
    products = std::move(longer);
  }
  std::vector<CaseCoordinates> cases;
  for (const OpFields& fields : products) cases.emplace_back(c).op_fields = op_fields_text(fields);
  return cases;
}

// How many rows the file of each case has.
void take_tokens_of_files(std::vector<CaseCoordinates>& cases, const JsonCursor& entry,
                          const Context& context) {
  for (CaseCoordinates& c : cases) {
    try {
      c.tokens = find_op(c.op) != nullptr ? replayed_op_tokens(c, context.root)
                                          : replayed_tokens(*replayed_file(c));
    } catch (const InputError& error) {
      entry.fail(error.what(), "");
    }
  }
}

// The product of an entry's lists, where `defaults` speak for absent keys.
std::vector<CaseCoordinates> expand(const JsonCursor& entry,
                                    const std::optional<JsonCursor>& defaults,
                                    const Context& context) {
  std::vector<CaseCoordinates> cases = {CaseCoordinates{}};
  const auto add_op_fields = [&] {
    std::vector<CaseCoordinates> longer;
    for (const auto& partial : cases) {
      const auto expanded = expand_op_fields(partial, entry, defaults);
      longer.insert(longer.end(), expanded.begin(), expanded.end());
    }
    cases = std::move(longer);
  };
  for (const auto& field : fields()) {
    if (field.key == "model") add_op_fields();  // the op is known by now
    auto found = entry.find(field.key);
    if (!found && defaults) found = defaults->find(field.key);
    if (!found) {
      if (field.key == "tokens" && std::ranges::all_of(cases, takes_a_file)) {
        take_tokens_of_files(cases, entry, context);
      } else if (field.key == "model" || field.key == "scheme" || field.key == "tokens") {
        entry.fail("the key " + in_quotes(field.key) + " is missing",
                   "add it here or to the defaults");
      }
      continue;
    }
    const auto values = values_of(*found);
    if (cases.size() * values.size() > max_cases) {
      entry.fail("more than " + std::to_string(max_cases) + " cases", "shorten the lists");
    }
    std::vector<CaseCoordinates> longer;
    longer.reserve(cases.size() * values.size());
    for (const auto& partial : cases) {
      for (const auto& value : values) field.read(value, context, longer.emplace_back(partial));
    }
    cases = std::move(longer);
  }
  return cases;
}

// What tensors must say is looked at where they are read (harness/workload).
void check_replay(const CaseCoordinates& c, const JsonCursor& entry) {
  if (!replayed_file(c)) {
    entry.fail("the model replay with inputs " + in_quotes(c.inputs),
               "its inputs are file:PATH.safetensors");
  }
  if (find_op(c.op) == nullptr && !c.op_fields.empty()) {
    entry.fail("the model replay with " + op_label(c),
               "its topk_ids say which experts every token goes to");
  }
  if (c.tp != 1 || c.ep != 1) {
    entry.fail(
        "the model replay with tp " + std::to_string(c.tp) + " and ep " + std::to_string(c.ep),
        "tensors are those of one rank: tp 1, ep 1, and an expert_map among them");
  }
}

void note_backends(const JsonCursor& entry, std::map<std::string, std::string>& places) {
  const auto found = entry.find("backend");
  if (!found) return;
  for (const JsonCursor& value : values_of(*found)) {
    if (!places.contains(value.text())) places.emplace(value.text(), value.place());
  }
}

// Refuses models that do not exist and ranks that do not divide, each once.
class LayerCheck {
 public:
  void check(const CaseCoordinates& c, const JsonCursor& entry, const fs::path& root) {
    if (c.model == replay_model_name) return check_replay(c, entry);
    if (c.layer >= 0 && c.model.find('/') == std::string::npos && !c.model.ends_with(".json")) {
      entry.fail("layer " + std::to_string(c.layer) + " of the model " + in_quotes(c.model),
                 "layers are those of a checkpoint: give the path of its folder as model");
    }
    if (c.layer >= 0 && find_op(c.op) != nullptr) {
      entry.fail(
          "layer " + std::to_string(c.layer) + " of a checkpoint for the op " + c.op,
          "a checkpoint's weights are for whole layers; leave the layer out, and the op's are "
          "generated for the model's shape");
    }
    if (!c.fields.empty()) {
      entry.fail("fields " + c.fields + " beside the model " + in_quotes(c.model),
                 "the model says so itself; they are for the model replay");
    }
    if (!done_.insert({c.model, c.op_fields, c.tp, c.ep}).second) return;
    try {
      if (!models_.contains(c.model)) models_.emplace(c.model, load_model(c.model, root));
      rank_layer(models_.at(c.model), c.tp, c.ep);
      fused_experts(c, models_.at(c.model));
    } catch (const InputError& error) {
      entry.fail(error.what(), "");
    }
  }

 private:
  std::map<std::string, Model> models_;
  std::set<std::tuple<std::string, std::string, std::int64_t, std::int64_t>> done_;
};

}  // namespace

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

Suite load_suite(const fs::path& file, const fs::path& root) {
  return read_suite(JsonDocument::read(file), file.parent_path(), root);
}

Suite read_suite(const JsonDocument& document, const fs::path& folder, const fs::path& root) {
  const JsonCursor top(document);
  top.only_keys({"schema", "name", "description", "seconds_per_case", "defaults", "cases"});
  static const std::array<std::string, 1> schema = {"moegauge.suite/1"};
  top.at("schema").one_of(schema, "schema");
  Suite suite{.name = top.at("name").text()};
  if (const auto found = top.find("description")) suite.description = found->string();
  if (const auto found = top.find("seconds_per_case")) {
    suite.seconds_per_case = found->number(0.01, 600);
  }
  const auto names = field_names();
  const auto defaults = top.find("defaults");
  if (defaults) {
    defaults->only_keys(names);
    note_backends(*defaults, suite.backend_places);
  }

  const Context context{folder, root};
  LayerCheck layers;
  std::map<std::string, std::string> first_seen;  // case id -> pointer of its entry
  const auto cases = top.at("cases");
  if (cases.items().empty()) cases.fail("no cases", "list at least one");
  for (const auto& entry : cases.items()) {
    entry.only_keys(names);
    note_backends(entry, suite.backend_places);
    for (auto& c : expand(entry, defaults, context)) {
      layers.check(c, entry, root);
      const std::string id = case_id(c);
      const auto [at, fresh] = first_seen.emplace(id, entry.pointer());
      if (!fresh) {
        entry.fail("the case " + id + " is listed twice (first in " + at->second + ")",
                   "list it once");
      }
      suite.cases.push_back(std::move(c));
    }
  }
  return suite;
}

}  // namespace moegauge
