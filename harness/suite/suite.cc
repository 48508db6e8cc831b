// Suite files, moegauge.suite/1, and their expansion into cases.
#include "harness/suite/suite.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "harness/json/cursor.h"
#include "harness/json/nearest.h"
#include "harness/suite/case_fields.h"
#include "harness/suite/own_fields.h"
#include "harness/suite/replayed_tokens.h"
#include "reference/base/input_error.h"
#include "reference/ops/op.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

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
                          const SuiteContext& context) {
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
                                    const SuiteContext& context) {
  std::vector<CaseCoordinates> cases = {CaseCoordinates{}};
  const auto add_op_fields = [&] {
    std::vector<CaseCoordinates> longer;
    for (const auto& partial : cases) {
      const auto expanded = expand_op_fields(partial, entry, defaults);
      longer.insert(longer.end(), expanded.begin(), expanded.end());
    }
    cases = std::move(longer);
  };
  for (const CaseField& field : case_fields()) {
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
  const auto names = case_field_names();
  const auto defaults = top.find("defaults");
  if (defaults) {
    defaults->only_keys(names);
    note_backends(*defaults, suite.backend_places);
  }

  const SuiteContext context{folder, root};
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
