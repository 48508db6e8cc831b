#include "harness/commands/tune_setup.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>
#include <system_error>
#include <vector>

#include "harness/commands/duration.h"
#include "harness/commands/output_place.h"
#include "harness/commands/preflight.h"
#include "harness/commands/results.h"
#include "harness/commands/selection.h"
#include "harness/measure/candidates.h"
#include "harness/measure/prepare.h"
#include "harness/suite/select.h"
#include "harness/workload/problem.h"
#include "harness/workload/workload.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

constexpr const char* default_tokens = "1-8192*2";
constexpr double most_seconds_per_key = 15;  // unless given; less where a budget is for many keys

double parse_percent(const std::string& text, const std::string& option) {
  double value = -1;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (error != std::errc() || after == end || std::string_view(after, end) != "%" ||
      !(value >= 0 && value < 100)) {
    throw InputError(option, "\"" + text + "\" is no share of the time", "e.g. 2% or 0.5%");
  }
  return value / 100;
}

// One of one backend, whose name it returns.
std::string backend_of(const TuneOptions& o, const Environment& environment) {
  require_backend(o.asked.backend, "--backend", environment.backends);
  if (o.device.empty()) return o.asked.backend;
  if (o.device.find(',') != std::string::npos) {
    throw InputError("--device", "\"" + o.device + "\" names several devices",
                     "this version tunes on one; give each a part of --tokens, and join the files "
                     "with --base");
  }
  std::string name = backend_of_device(o.device, environment.backends);
  if (o.asked.backend != CaseCoordinates{}.backend && o.asked.backend != name) {
    throw InputError("--device", "\"" + o.device + "\" is not of --backend " + o.asked.backend,
                     "name one of them");
  }
  return name;
}

std::vector<std::int64_t> tokens_of(const TuneOptions& o, const ConfigTable& base) {
  if (o.tokens.empty() && !base.entries.empty()) {
    std::vector<std::int64_t> keys;
    for (const auto& [key, config] : base.entries) keys.push_back(key);
    return keys;
  }
  auto tokens = parse_token_list(o.tokens.empty() ? default_tokens : o.tokens, "--tokens");
  std::ranges::sort(tokens);
  if (tokens.front() == 0) {
    throw InputError("--tokens", "0 tokens launch nothing", "batch sizes from 1");
  }
  return tokens;
}

void read_base(const TuneOptions& o, TuneSetup& setup) {
  if (o.base.empty()) return;
  setup.base = load_config_table(o.base);
  check_table(setup.base, setup.problem, setup.backend->device());
  for (const auto& [tokens, config] : setup.base.entries) {
    Problem problem = setup.problem;
    problem.tokens = tokens;
    for (const auto& [key, value] : config.values) {
      const auto refusal = setup.backend->refuses_config(problem, {{{key, value}}});
      if (refusal && refusal->reason == RefusalReason::config_unknown_key) {
        throw InputError(o.base + ": /" + std::to_string(tokens) + "/" + key, refusal->sentence,
                         "");
      }
    }
  }
}

void place_outputs(const TuneOptions& o, TuneSetup& setup, const fs::path& root) {
  setup.out = !o.out.empty() ? fs::path(o.out)
                             : fs::path("results/local") /
                                   config_file_name(setup.problem.layer, *setup.problem.scheme,
                                                    setup.backend->device().tuned_name());
  // What is there stays as it is until all is decided; it may be --base, and nothing may win.
  setup.draft = setup.out.string() + ".draft";
  const fs::path model = model_file(o.asked.model, root);
  std::vector<NamedFile> taken = {{"the model", model}};
  std::ranges::copy(weights_beside(model), std::back_inserter(taken));
  require_own_place("--out", setup.out, taken);
  taken.push_back({"--base", o.base});
  for (const char* suffix : {".draft", ".journal", ".journal.old"}) {
    require_own_place("--out", setup.out.string() + suffix, taken);
  }
  taken.push_back({"the journal", setup.out.string() + ".journal"});
  taken.push_back({"--out", setup.out});
  if (!o.markdown.empty()) require_own_place("--markdown", o.markdown, taken);
  taken.push_back({"--markdown", o.markdown});
  if (!o.result.empty()) require_own_place("--result", o.result, taken);
}

}  // namespace

PreparedTune prepare_tune(const TuneOptions& o, const Environment& environment,
                          const fs::path& root) {
  PreparedTune prepared;
  TuneSetup& setup = prepared.setup;
  setup.min_win = parse_percent(o.min_win, "--min-win");
  setup.runner.timeout_seconds = parse_duration(o.timeout, "--timeout");
  if (!o.budget.empty()) setup.runner.budget_seconds = parse_duration(o.budget, "--budget");
  setup.runner.measure.seed = o.seed;
  setup.asked = o.asked;
  const std::string wanted = backend_of(o, environment);
  require_scheme(o.asked.scheme);
  setup.problem = problem_of(setup.asked, root);
  require_routing(o.asked.routing);
  parse_routing_law(o.asked.routing, setup.problem.layer);
  const auto candidates = candidates_for(setup.problem, environment.backends, wanted);
  setup.backend = chosen_of(candidates);
  if (setup.backend == nullptr) {
    for (const Candidate& c : candidates) {
      prepared.missing += (prepared.missing.empty() ? "" : "; ") + std::string(c.backend->name()) +
                          ": " + c.why + (c.remedy.empty() ? "" : "; it would need " + c.remedy);
    }
    return prepared;
  }
  setup.asked.backend = setup.backend->name();
  read_base(o, setup);
  setup.tokens = tokens_of(o, setup.base);
  setup.max_candidates = o.candidates;
  setup.search.seconds_per_key =
      o.seconds_per_key > 0
          ? o.seconds_per_key
          : std::min(most_seconds_per_key,
                     setup.runner.budget_seconds / 2 / static_cast<double>(setup.tokens.size()));
  setup.check_between = !o.no_between;
  place_outputs(o, setup, root);
  setup.metadata = {{"device_key", device_key(setup.backend->device())},
                    {"moegauge_version", MOEGAUGE_VERSION},
                    {"date", today()},
                    {"routing", o.asked.routing},
                    {"inputs", setup.asked.inputs},
                    {"cache", setup.asked.cache},
                    {"launch", setup.asked.launch},
                    {"seed", std::to_string(o.seed)},
                    {"min_win", o.min_win}};
  if (!o.result.empty()) setup.metadata["result"] = fs::path(o.result).filename().string();
  return prepared;
}

}  // namespace moegauge
