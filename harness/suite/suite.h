// Suites as data: `moegauge.suite/1` files expanded into cases. Strict: every error names the file,
// the JSON pointer (or line, for syntax), the offending key and the nearest right one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend.h"
#include "reference/layer.h"

namespace moegauge {

// One value of every suite coordinate, as it is written in files.
struct CaseCoordinates {
  std::string op = "fused_moe";
  std::string model;              // name of a file in suites/models, or the path of a config.json
  std::string scheme;             //
  std::int64_t tp = 1, ep = 1;    //
  std::string backend = "auto";   //
  std::string config = "default"; // default, tuned, file:PATH, or an inline object as compact JSON
  std::string routing = "uniform";
  std::string inputs = "gaussian";
  std::string cache = "cold_weights";
  std::string launch = "graph";   // backends without graphs run eagerly and record so
  std::int64_t tokens = 1;        // M

  friend bool operator==(const CaseCoordinates&, const CaseCoordinates&) = default;
};

// `op/model/scheme/tp1.ep1/backend/config/routing/inputs/cache/launch/M=16`; an inline config is
// shown as #hash8. Unique within a result.
std::string case_id(const CaseCoordinates& c);
// The id without backend and config: what rivals are compared on.
std::string point_id(const CaseCoordinates& c);

// A model's MoE layer as served on one rank.
struct Model {
  std::string name;
  std::string hf_id;
  Layer layer;                    // whole model: tp = ep = 1
  std::string routing_rule;       // softmax, softmax_after_topk, grouped_sigmoid, sigmoid_top1
  bool renormalize = false;
  std::int64_t groups = 1, top_groups = 1;
  bool correction_bias = false;
  double scaling_factor = 1.0;
  std::int64_t shared_experts = 0;
  std::vector<std::string> served_as;  // schemes
};

// suites/models/NAME.json under `root`, or a Hugging Face config.json by path. Throws InputError.
Model load_model(const std::string& name_or_path, const std::filesystem::path& root);
// This rank's layer: N / tp (refused where it does not divide), experts / ep by a linear map.
Layer rank_layer(const Model& model, std::int64_t tp, std::int64_t ep);

struct Suite {
  std::string name;
  std::string description;
  std::vector<CaseCoordinates> cases;  // expanded products, duplicates refused
};

// Throws InputError. `root` is the folder that holds suites/ and kernels/.
Suite load_suite(const std::filesystem::path& file, const std::filesystem::path& root);

}  // namespace moegauge
