#include "harness/commands/explain.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "harness/commands/options.h"
#include "harness/commands/results.h"
#include "harness/config_table.h"
#include "harness/judge/text_table.h"
#include "harness/measure/candidates.h"
#include "harness/measure/prepare.h"
#include "harness/root.h"
#include "harness/suite/suite.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct ExplainOptions {
  CaseCoordinates asked;
  bool json = false;
};

void declare_options(CLI::App& app, ExplainOptions& o) {
  constexpr auto most = std::numeric_limits<std::int32_t>::max();
  app.add_option("MODEL", o.asked.model, "Name of a model, or the path of a config.json")
      ->required();
  app.add_option("--scheme", o.asked.scheme, "Number formats, as moegauge list schemes names them")
      ->required();
  app.add_option("--tp", o.asked.tp, "Tensor-parallel ranks [1]")->check(CLI::Range(1, most));
  app.add_option("--ep", o.asked.ep, "Expert-parallel ranks [1]")->check(CLI::Range(1, most));
  app.add_option("--tokens", o.asked.tokens, "Batch size [1]")->check(CLI::Range(0, most));
  add_json_flag(app, o.json);
  app.footer(
      "Shows every backend in the order in which `auto` tries them: chosen, would also serve, "
      "refuses "
      "(with the\nreason) or absent (with how to get it), and which tuned config the chosen one "
      "would "
      "use. Exit codes:\n0 a backend serves it; 2 bad input; 4 none does.");
}

std::string layer_line(const Problem& p) {
  const Layer& l = p.layer;
  return "E=" + std::to_string(l.experts) + " (" + std::to_string(l.local_experts()) +
         " local) top_k=" + std::to_string(l.top_k) + " K=" + std::to_string(l.hidden_size) +
         " N=" + std::to_string(l.intermediate_size) + " scheme=" + p.scheme->name() +
         " M=" + std::to_string(p.tokens);
}

// One phrase on the configs that the chosen backend would run with.
std::string config_line(const Problem& problem, const Backend& backend, const fs::path& root) {
  const fs::path file = tuned_config_file(backend, problem);
  if (file.empty()) return "default config only: it has no tuned files";
  std::error_code ignored;
  if (!fs::exists(root / file, ignored)) {
    return "default config only: there is no tuned file " + file.string();
  }
  const ConfigChoice choice = choose(load_config_table(root / file), problem.tokens);
  return "tuned file " + file.string() + ", entry M=" + std::to_string(choice.key) +
         (choice.extrapolated ? " (extrapolated)" : "");
}

// What would have to change, where nobody serves.
std::vector<std::string> ways_out(const std::vector<Candidate>& candidates) {
  std::vector<std::string> ways;
  for (const Candidate& c : candidates) {
    ways.push_back(std::string(c.backend->name()) +
                   " would need: " + (c.remedy.empty() ? c.why : c.remedy));
  }
  return ways;
}

std::string text_of(const std::vector<Candidate>& candidates) {
  TextTable table({Align::left, Align::left, Align::left});
  for (const Candidate& c : candidates) {
    std::string why = c.reason.empty() ? c.why : c.reason + ": " + c.why;
    if (!c.remedy.empty()) why += "; " + c.remedy;
    table.add({std::string(c.backend->name()), std::string(to_string(c.standing)), why});
  }
  return table.str();
}

Json json_of(const std::vector<Candidate>& candidates) {
  Json list = Json::array();
  for (const Candidate& c : candidates) {
    list.push_back({{"backend", c.backend->name()},
                    {"standing", to_string(c.standing)},
                    {"reason", c.reason},
                    {"why", c.why},
                    {"remedy", c.remedy}});
  }
  return list;
}

int explain(const ExplainOptions& o, const Environment& environment) {
  const fs::path root = find_root();
  const Problem problem = problem_of(o.asked, root);
  const std::vector<Candidate> candidates = candidates_for(problem, environment.backends);
  const Backend* chosen = chosen_of(candidates);
  const bool served = chosen != nullptr;
  const std::string configs = served ? config_line(problem, *chosen, root) : "";
  if (o.json) {
    environment.out << strict_json({{"layer", layer_line(problem)},
                                    {"served", served},
                                    {"config", configs},
                                    {"backends", json_of(candidates)}})
                    << '\n';
    return served ? exit_ok : exit_no_verdict;
  }
  environment.out << layer_line(problem) << "\n\n" << text_of(candidates);
  if (served) {
    environment.out << "\n" << chosen->name() << ": " << configs << '\n';
    return exit_ok;
  }
  environment.out << "\nnobody serves this layer\n";
  for (const std::string& way : ways_out(candidates)) environment.out << "  " << way << '\n';
  return exit_no_verdict;
}

}  // namespace

Action add_explain(CLI::App& subcommand) {
  auto options = std::make_shared<ExplainOptions>();
  declare_options(subcommand, *options);
  return [options](const Environment& environment) { return explain(*options, environment); };
}

}  // namespace moegauge
