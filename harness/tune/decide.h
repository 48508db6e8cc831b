// From measurements to entries: who wins a key, and what the table becomes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/config_table.h"
#include "harness/tune/search.h"

namespace moegauge {

enum class KeyVerdict : std::uint8_t {
  added,       // an entry that --base, if there is one, has not
  changed,     // an entry of --base that was displaced
  kept,        // an entry of --base that was not
  left,        // no entry: the default, or what lookup in --base gives, is not beaten
  unfinished,  // the run ended before, or the default itself has no latency; see `reason`
};
std::string_view to_string(KeyVerdict verdict);

struct KeyDecision {
  std::int64_t tokens = 0;
  KeyVerdict verdict = KeyVerdict::left;
  Config config = {};       // what lookup must give for these tokens; unless unfinished
  std::string hash = {};    // of what was compiled for it, where it was measured
  std::string reason = {};  // a phrase
  // Of added and changed: what the final run puts back if the candidate does not hold. Never an
  // incumbent that failed or lost to the default: then the default.
  Config fallback = {};
  bool fallback_is_default = true;
};

// True where `challenger` is faster than `holder` by at least `min_win` (0.02: a fiftieth less
// time), and the whole interval of their ratio, by rounds that both took part in, says faster.
bool wins(const CaseRecord& challenger, const CaseRecord& holder, double min_win);

// A candidate must win over the default and over the incumbent; the best of those that do is taken.
// An incumbent is displaced by nothing less, except where it has no latency.
KeyDecision decide(const KeyPlan& plan, const KeyFindings& findings, double min_win);

// A config with all that it leaves to the default at these tokens (key_plan.h).
using WholeConfig = std::function<Config(const Config& config, std::int64_t tokens)>;

// `base` (no entries: none) with what was decided. Where lookup would give another config at a key
// that was left than the one decided on, the key gets an entry, its decision becomes `added`, and
// its reason says so.
ConfigTable merged(ConfigTable base, std::vector<KeyDecision>& decisions, const WholeConfig& whole);

// Batch sizes between neighbouring keys of the table, the last that the lower key serves and the
// first that the upper one does, where either neighbour is an entry of this run and lookup gives
// another config than `standard`, the default there.
std::vector<std::int64_t> between_keys(const ConfigTable& table,
                                       const std::vector<KeyDecision>& decisions,
                                       const std::function<Config(std::int64_t)>& standard,
                                       const WholeConfig& whole);

}  // namespace moegauge
