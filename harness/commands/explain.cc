#include "harness/commands/explain.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "harness/commands/options.h"
#include "harness/commands/results.h"
#include "harness/commands/selection.h"
#include "harness/config_table.h"
#include "harness/json/nearest.h"
#include "harness/judge/text_table.h"
#include "harness/measure/candidates.h"
#include "harness/measure/prepare.h"
#include "harness/root.h"
#include "harness/suite/suite.h"
#include "kernels/arch.h"
#include "reference/base/input_error.h"
#include "reference/ops/op.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct ExplainOptions {
  CaseCoordinates asked;
  std::string arch = {}, dtype = {}, activation = {};  // empty: this machine's, the model's
  bool router_weight_on_input = false;
  bool json = false;
};

void declare_options(CLI::App& app, ExplainOptions& o) {
  constexpr auto most = std::numeric_limits<std::int32_t>::max();
  app.add_option("MODEL", o.asked.model, "Name of a model, or the path of a config.json")
      ->required();
  app.add_option("--scheme", o.asked.scheme, "Number formats, as moegauge list schemes names them")
      ->required();
  app.add_option("--op", o.asked.op, "A single op, as moegauge list ops names them [fused_moe]");
  app.add_option("--tp", o.asked.tp, "Tensor-parallel ranks [1]")->check(CLI::Range(1, most));
  app.add_option("--ep", o.asked.ep, "Expert-parallel ranks [1]")->check(CLI::Range(1, most));
  app.add_option("--tokens", o.asked.tokens, "Batch size [1]")->check(CLI::Range(0, most));
  app.add_option("--dtype", o.dtype, "Activations in bf16 or fp16 [as the model]")
      ->check(CLI::IsMember(dtype_words));
  app.add_option("--activation", o.activation,
                 joined(activation_words) + " [as the model; swiglu_clamped with 1.702, 1, 7]")
      ->check(CLI::IsMember(activation_words));
  app.add_flag("--router-weight-on-input", o.router_weight_on_input,
               "The router weight multiplies the first GEMM, as in Llama-4");
  app.add_option("--arch", o.arch,
                 "Answer for devices of this family, here or not: gfx942, gfx950, gfx1201, sm_90, "
                 "cpu, ... [the devices of this machine]");
  add_json_flag(app, o.json);
  app.footer(
      "With --arch: what the kernels of this version would serve on such devices, and what the "
      "family can do.\n"
      "Shows every backend in the order in which `auto` tries them: chosen, would also serve, "
      "refuses "
      "(with the\nreason) or absent (with how to get it), and which tuned config the chosen one "
      "would "
      "use. Exit codes:\n0 a backend serves it; 2 bad input; 4 none does.");
}

std::string activation_text(const Activation& a) {
  const std::string& name = activation_words.at(static_cast<std::size_t>(a.kind));
  if (a.kind != ActivationKind::swiglu_clamped) return name;
  char parameters[96];
  std::snprintf(parameters, sizeof parameters, "(alpha %g, beta %g, limit %g)", a.alpha, a.beta,
                a.limit);
  return name + parameters;
}

std::string layer_line(const Layer& l, const Scheme& scheme, std::int64_t tokens) {
  return "E=" + std::to_string(l.experts) + " (" + std::to_string(l.local_experts()) +
         " local) top_k=" + std::to_string(l.top_k) + " K=" + std::to_string(l.hidden_size) +
         " N=" + std::to_string(l.intermediate_size) + " scheme=" + scheme.name() +
         " M=" + std::to_string(tokens) + "\n" + dtype_words.at(static_cast<std::size_t>(l.dtype)) +
         " activations, " + activation_text(l.activation) +
         (l.router_weight_on_input ? ", router weight on input" : "");
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
// `scheme` is read with a family only.
std::vector<std::string> ways_out(const std::vector<Candidate>& candidates, const Scheme* scheme,
                                  const ArchFamily* family) {
  std::vector<std::string> ways;
  for (const Candidate& c : candidates) {
    if (family != nullptr && c.backend->name() != family->backend) continue;
    ways.push_back(std::string(c.backend->name()) +
                   " would need: " + (c.remedy.empty() ? c.why : c.remedy));
  }
  if (family == nullptr) return ways;
  const std::string name(family->name);
  if (!family->has_kernels) {
    ways.push_back(name + " would need kernels in the " + std::string(family->backend) +
                   " backend; this version has none");
  }
  // A backend may serve operands that its instructions do not take as they are, and refuse the
  // layer for something else.
  const bool of_other_reasons =
      family->has_kernels && std::ranges::any_of(candidates, [&](const Candidate& c) {
        return c.backend->name() == family->backend && !c.reason.empty() &&
               c.reason != to_string(RefusalReason::scheme);
      });
  const auto obstacle = operand_obstacle(*family, scheme->traits());
  if (obstacle && !of_other_reasons) ways.push_back(name + ": " + *obstacle);
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

const ArchFamily* asked_family(const std::string& arch) {
  if (arch.empty()) return nullptr;
  if (const ArchFamily* family = arch_family(arch)) return family;
  std::vector<std::string> known;
  for (const ArchFamily& family : arch_families()) known.emplace_back(family.name);
  throw InputError("--arch", "no family of devices is called " + in_quotes(arch),
                   suggestion(arch, known));
}

Problem asked_problem(const ExplainOptions& o, const fs::path& root) {
  Problem problem = problem_of(o.asked, root);
  if (!o.dtype.empty()) {
    const auto at = std::ranges::find(dtype_words, o.dtype) - dtype_words.begin();
    const auto dtype = static_cast<Dtype>(at);
    const auto only = problem.scheme->traits().only;
    if (only && *only != dtype) {
      throw InputError("--dtype", o.asked.scheme + " has no activations in " + o.dtype,
                       dtype_words.at(static_cast<std::size_t>(*only)));
    }
    problem.layer.dtype = dtype;
  }
  if (!o.activation.empty()) {
    const auto at = std::ranges::find(activation_words, o.activation) - activation_words.begin();
    problem.layer.activation = {.kind = static_cast<ActivationKind>(at)};
  }
  if (o.router_weight_on_input) problem.layer.router_weight_on_input = true;
  return problem;
}

// All that is answered; both forms of the output are made of it.
struct Answer {
  std::string kind = "layer", layer = {}, arch = {}, config = {};
  std::vector<Candidate> candidates = {};
  const Backend* chosen = nullptr;
  std::vector<std::string> ways_out = {};
};

// Of a single op, with its fields as they are by default, on the devices of this machine.
Answer answer_op(const ExplainOptions& o, const Environment& environment, const fs::path& root) {
  if (find_op(o.asked.op) == nullptr) {
    std::vector<std::string> known = {CaseCoordinates{}.op};
    for (const Op* op : all_ops()) known.emplace_back(op->name());
    throw InputError("--op", "no op is called " + in_quotes(o.asked.op),
                     suggestion(o.asked.op, known));
  }
  if (!o.arch.empty() || !o.dtype.empty() || !o.activation.empty() || o.router_weight_on_input) {
    throw InputError("--op " + o.asked.op, "with options that vary a whole layer",
                     "the model's own layer: leave out --arch, --dtype, --activation and "
                     "--router-weight-on-input");
  }
  const auto problem = op_problem_of(o.asked, root);
  if (!problem) return {.kind = "op", .layer = o.asked.op, .ways_out = {problem.error().reason}};
  Answer answer{
      .kind = "op",
      .layer = o.asked.op + " of " + layer_line(problem->layer, *problem->scheme, problem->tokens),
      .config = "default config only: single ops have no tuned files",
      .candidates = candidates_for(*problem, environment.backends)};
  answer.chosen = chosen_of(answer.candidates);
  if (answer.chosen == nullptr) answer.ways_out = ways_out(answer.candidates, nullptr, nullptr);
  return answer;
}

Answer answer(const ExplainOptions& o, const Environment& environment) {
  const fs::path root = find_root();
  require_scheme(o.asked.scheme);
  if (o.asked.op != CaseCoordinates{}.op) return answer_op(o, environment, root);
  const ArchFamily* family = asked_family(o.arch);
  const Problem problem = asked_problem(o, root);
  Answer answer{.layer = layer_line(problem.layer, *problem.scheme, problem.tokens),
                .candidates = family != nullptr
                                  ? candidates_on(*family, problem, environment.backends)
                                  : candidates_for(problem, environment.backends)};
  answer.chosen = chosen_of(answer.candidates);
  if (family != nullptr) {
    answer.arch = std::string(family->name) + ": " + capabilities(*family);
    if (answer.chosen != nullptr) answer.config = "tuned files are looked up by the device's name";
  } else if (answer.chosen != nullptr) {
    answer.config = config_line(problem, *answer.chosen, root);
  }
  if (answer.chosen == nullptr)
    answer.ways_out = ways_out(answer.candidates, problem.scheme.get(), family);
  return answer;
}

void print_text(const Answer& a, std::ostream& out) {
  out << a.layer << '\n';
  if (!a.arch.empty()) out << a.arch << '\n';
  out << '\n' << text_of(a.candidates);
  if (a.chosen != nullptr) {
    out << '\n' << a.chosen->name() << ": " << a.config << '\n';
    return;
  }
  out << "\nnobody serves this " << a.kind << "\n";
  for (const std::string& way : a.ways_out) out << "  " << way << '\n';
}

int explain(const ExplainOptions& o, const Environment& environment) {
  const Answer a = answer(o, environment);
  if (o.json) {
    environment.out << strict_json({{"layer", a.layer},
                                    {"arch", a.arch},
                                    {"served", a.chosen != nullptr},
                                    {"config", a.config},
                                    {"backends", json_of(a.candidates)},
                                    {"would_have_to_change", a.ways_out}})
                    << '\n';
  } else {
    print_text(a, environment.out);
  }
  return a.chosen != nullptr ? exit_ok : exit_no_verdict;
}

}  // namespace

Action add_explain(CLI::App& subcommand) {
  auto options = std::make_shared<ExplainOptions>();
  declare_options(subcommand, *options);
  return [options](const Environment& environment) { return explain(*options, environment); };
}

}  // namespace moegauge
