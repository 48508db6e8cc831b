// What is measured at one batch size: the default, what is used today, and the candidates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "harness/config_table.h"
#include "kernels/backend.h"

namespace moegauge {

struct KeyPlan {
  std::int64_t tokens = 0;
  Config standard = {};  // the default, in the keys that a tuned file has
  // What lookup in --base gives for these tokens, where that is not the default.
  std::optional<Config> incumbent = {};
  bool in_base = false;  // as an entry of its own
  // The likely ones first; none is the default or the incumbent under another spelling, no two are
  // the same.
  std::vector<Config> candidates = {};
  std::size_t left_out = 0;  // candidates beyond the number asked for
};

// A config with all that it leaves to the default; two that agree in this are the same.
Config whole_config(const Backend& backend, const Problem& problem, const Config& config);

// `problem` has the tokens. `base` may be null.
KeyPlan plan_key(const Backend& backend, const Problem& problem, const ConfigTable* base,
                 std::size_t max_candidates);

}  // namespace moegauge
