// Suites as data: `moegauge.suite/1` files expanded into cases. Strict: every error names the file,
// the JSON pointer (or line, for syntax), the offending key and the nearest right one.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/json/document.h"
#include "kernels/backend.h"
#include "reference/layer.h"

namespace moegauge {

class JsonCursor;

// One value of every suite coordinate, as it is written in files. Paths in a suite are relative to
// the suite's folder; load_suite makes them relative to the current folder.
struct CaseCoordinates {
  std::string op = "fused_moe";
  // Name of a file in suites/models, the path of a config.json or its folder, or "replay": what the
  // tensors of `inputs` say.
  std::string model = {};
  std::string scheme = {};         //
  std::int64_t tp = 1, ep = 1;     //
  std::string backend = "auto";    //
  std::string config = "default";  // default, tuned, file:PATH, or an inline object as compact JSON
  std::string routing = "uniform";
  std::string inputs = "gaussian";  // or file:PATH.safetensors (docs/replay.md)
  std::string cache = "cold_weights";
  std::string launch = "graph";  // backends without graphs run eagerly and record so
  std::int64_t tokens = 1;       // M
  std::int64_t layer = -1;  // of the checkpoint beside `model`, whose weights it has; -1: generated
  // What a case of the model "replay" says of its layer, which no tensor does: the keys of
  // layer_field_names, an object as compact JSON with sorted keys; empty: nothing.
  std::string fields = {};
  // Those of the op's own fields (own_fields.h) that are not as they are by default, compact JSON
  // with sorted keys; empty: none.
  std::string op_fields = {};

  friend bool operator==(const CaseCoordinates&, const CaseCoordinates&) = default;
};

// `op/model/scheme/tp1.ep1/backend/config/routing/inputs/cache/launch/M=16`; an op's own fields
// follow its name where they are not the default, `align:block_size=16`; a checkpoint's layer
// follows the model, `@3`; an inline config is shown as #hash8, and so are `fields`, after the
// model. "/", "%", white space and control characters inside a part (of a path) are written %2F and
// so on, so that different coordinates never share an id. Unique within a result.
std::string case_id(const CaseCoordinates& c);
// The id without backend and config: what rivals are compared on.
std::string point_id(const CaseCoordinates& c);

// The op with its own fields, as it stands in an id.
std::string op_label(const CaseCoordinates& c);

// CaseCoordinates::op_fields and what it says. op_fields_from throws InputError that names `where`.
std::string op_fields_text(const OpFields& fields);
OpFields op_fields_from(const std::string& text, const std::string& where);
// All fields of the case's op, those at their default too.
OpFields op_fields_of(const CaseCoordinates& c);

inline constexpr std::string_view replay_model_name = "replay";
// The file that a case takes its tensors from; nothing where all are generated.
std::optional<std::filesystem::path> replayed_file(const CaseCoordinates& c);

// What the coordinate `config` asks for.
struct ConfigRequest {
  enum class Kind : std::uint8_t {
    default_config,
    tuned,
    file,
    inline_values
  } kind = Kind::default_config;
  std::filesystem::path file = {};  // of `file`
  Config config = {};               // of `inline_values`
};
// Throws InputError that names `where`.
ConfigRequest parse_config_request(const std::string& text, const std::string& where);
// The canonical coordinate of an inline object: compact JSON, keys sorted.
std::string inline_config(const Config& config);
// First 8 hex digits of the 64-bit FNV-1a hash of `text`.
std::string text_hash8(std::string_view text);
// That of inline_config().
std::string config_hash8(const Config& config);

// A model's MoE layer as served on one rank.
struct Model {
  std::string name = {};
  std::string hf_id = {};
  Layer layer = {};               // whole model: tp = ep = 1
  std::string routing_rule = {};  // softmax, softmax_after_topk, grouped_sigmoid, sigmoid_top1
  bool renormalize = false;
  std::int64_t groups = 1, top_groups = 1;
  bool correction_bias = false;
  double scaling_factor = 1.0;
  std::int64_t shared_experts = 0;
  std::vector<std::string> served_as = {};  // schemes
  std::string source = {};                  // where the figures come from, in words
};

// How files and options spell dtypes and activations, by enumerator value.
extern const std::array<std::string, 2> dtype_words;
extern const std::array<std::string, 4> activation_words;

// Names of the files in suites/models under `root`, sorted.
std::vector<std::string> model_names(const std::filesystem::path& root);

// The file of a model: suites/models/NAME.json under `root`, or a path to one or to a Hugging Face
// config.json or its folder. It need not exist.
std::filesystem::path model_file(const std::string& name_or_path,
                                 const std::filesystem::path& root);
// Reads that file. Throws InputError.
Model load_model(const std::string& name_or_path, const std::filesystem::path& root);
// What a case of the model "replay", or the metadata of a dump, may say of its layer, with the
// values that model files give these keys: experts, top_k, activation (a kind without parameters
// may be a string), gate_up_order, router_weight_on_input, and routing_rule for their `routing`.
std::vector<std::string> layer_field_names();
// Puts one field, or all of an object as text, into `model`. Throw InputError.
void read_layer_field(const std::string& name, const JsonCursor& value, Model& model);
void read_layer_fields(const std::string& fields, const std::string& where, Model& model);
// Those of a layer that its tensors do not show.
std::string layer_fields_of(const Layer& layer);
std::string layer_fields_of(const OpProblem& problem);
// Refuses a model that contradicts itself (top_k above experts, ...) or is larger than any. Throws
// InputError.
void check_model(const Model& model, const std::string& where);
// Rank 0's layer: N / tp (refused where it does not divide), experts / ep by a linear map that
// gives the remainder to the first ranks, so that rank 0 holds the first ceil(experts / ep). Throws
// InputError.
Layer rank_layer(const Model& model, std::int64_t tp, std::int64_t ep);

// What to say about a name that make_scheme does not know.
struct UnknownName {
  std::string wrong = {}, right = {};
};
UnknownName unknown_scheme(const std::string& name);
// About a routing that is neither a law nor a trace file that is there.
UnknownName unknown_routing(const std::string& text);

// The model's routing rule with its numbers.
Router router_of(const Model& model);

inline constexpr std::int64_t max_tokens = std::int64_t{1} << 20;
inline constexpr std::int64_t max_checkpoint_layers = 100'000;
// Of a layer: K and N, and E.
inline constexpr std::int64_t max_layer_size = std::int64_t{1} << 20, max_experts = 65536;

struct Suite {
  std::string name = {};
  std::string description = {};
  // Seconds of measuring after which a case begins no new round; nothing: as StoppingRule has it.
  std::optional<double> seconds_per_case = {};
  std::vector<CaseCoordinates> cases = {};  // expanded products, duplicates refused
  // Where each backend's name is written first, "file:line: /pointer": whether there is such a one
  // is for those to say who have backends.
  std::map<std::string, std::string> backend_places = {};
};

// Expands products in a fixed order, whatever the order of the keys: op, its own fields, model, tp,
// ep, scheme, inputs, routing, cache, launch, tokens, backend, config, the last fastest. So one
// layer's cases are adjacent, and within them each point's rivals. Values keep their order in the
// file. A duplicate case is refused: a suite that lists one twice measures something other than its
// author thinks.
//
// Throws InputError, also where a model does not exist or does not divide by tp and ep, or a named
// file is missing. `root` is the folder that holds suites/ and kernels/.
Suite load_suite(const std::filesystem::path& file, const std::filesystem::path& root);
// The same from a document; `folder` is where its relative paths start.
Suite read_suite(const JsonDocument& document, const std::filesystem::path& folder,
                 const std::filesystem::path& root);

}  // namespace moegauge
