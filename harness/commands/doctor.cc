#include "harness/commands/doctor.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "harness/commands/calibrate.h"
#include "harness/commands/machine_facts.h"
#include "harness/commands/options.h"
#include "harness/commands/results.h"
#include "harness/judge/text_table.h"
#include "harness/measure/prepare.h"
#include "harness/root.h"
#include "harness/suite/suite.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct DoctorOptions {
  bool measure = false;
  std::string model;
  bool json = false;
  CalibrateOptions calibrate;
};

void declare_options(CLI::App& app, DoctorOptions& o) {
  CLI::Option* measure = app.add_flag(
      "--measure", o.measure,
      "Also measure each backend's ceilings: memory reads and, per scheme, dot products");
  app.add_option("--model", o.model,
                 "Model whose layer they are measured for [that of suites/quick.json]")
      ->needs(measure);
  add_calibrate_options(app, o.calibrate, *measure);
  add_json_flag(app, o.json);
  app.footer(
      "Shows what this machine offers, which backends are there, how to get the others, and what "
      "would "
      "make\nmeasurements noisy, with what to do about it. Exit codes: 0 a backend is there; 2 bad "
      "input; 4 none is.\n\n"
      "With --calibrate it measures how much processes differ here where nothing changes, for "
      "moegauge gate:\n"
      "  moegauge doctor --calibrate suites/quick.json --out calibration.json\n"
      "  moegauge gate now.json --baseline base.json --calibration calibration.json\n"
      "Exit codes then: 0; 2 bad input; 3 a case failed; 4 no case was ok in two processes.");
}

std::string gib(std::int64_t bytes) {
  const auto tenths = bytes * 10 / (std::int64_t{1} << 30);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

std::string in_a_row(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

std::string or_unknown(const std::string& text) { return text.empty() ? "not told" : text; }

std::string caches_of(const MachineFacts& facts) {
  std::vector<std::string> words;
  for (const CpuCache& c : facts.caches) {
    const std::string kind = c.type == "Instruction" ? "i" : c.type == "Data" ? "d" : "";
    words.push_back("L" + std::to_string(c.level) + kind + " " + c.size + " per " +
                    std::to_string(c.shared_by));
  }
  return in_a_row(words, ", ");
}

std::string switch_state(const std::optional<bool>& on) {
  return on ? (*on ? "on" : "off") : "not told";
}

// Name and value, in the order shown.
Json facts_json(const MachineFacts& f) {
  return {{"cpu", or_unknown(f.cpu_model)},
          {"cpus", std::to_string(f.logical_cpus) + ", usable by this process " +
                       std::to_string(f.usable_cpus)},
          {"instruction sets", or_unknown(in_a_row(f.instruction_sets, " "))},
          {"caches", or_unknown(caches_of(f))},
          {"memory", gib(f.memory_bytes) + ", available " + gib(f.available_bytes)},
          {"governor", or_unknown(f.governor)},
          {"turbo", switch_state(f.turbo)},
          {"SMT", switch_state(f.smt)},
          {"huge pages", or_unknown(f.transparent_huge_pages)},
          {"kernel", or_unknown(f.kernel)}};
}

// Rates for every scheme that the backend serves on this layer; the first that fails says why.
Json ceilings_json(const Backend& backend, const std::string& model, const fs::path& root) {
  Json list = Json::array();
  for (const std::string_view name : scheme_names()) {
    CaseCoordinates c;
    c.model = model;
    c.scheme = std::string(name);
    const Problem problem = problem_of(c, root);
    if (backend.refuses(problem)) continue;
    const auto ceilings = backend.measure_ceilings(problem);
    if (!ceilings) {
      list.push_back({{"scheme", name}, {"fault", ceilings.error().sentence}});
      continue;
    }
    list.push_back({{"scheme", name},
                    {"read_gbytes_per_s", ceilings->read_bytes_per_s / 1e9},
                    {"dot_gflops", ceilings->dot_flops_per_s / 1e9}});
  }
  return list;
}

std::string model_of_quick_suite(const fs::path& root) {
  return load_suite(root / "suites" / "quick.json", root).cases.front().model;
}

Json backends_json(const DoctorOptions& o, const Environment& environment) {
  const fs::path root = find_root();
  Json list = Json::array();
  for (const Backend* backend : environment.backends) {
    const Availability availability = backend->availability();
    Json row = {{"name", backend->name()},
                {"present", availability.present},
                {"detail", availability.detail},
                {"remedy", availability.remedy}};
    if (availability.present) {
      const Device device = backend->device();
      row["device"] = device_key(device);
      row["last_level_cache_bytes"] = device.last_level_cache_bytes;
      if (o.measure) {
        row["ceilings"] =
            ceilings_json(*backend, o.model.empty() ? model_of_quick_suite(root) : o.model, root);
      }
    }
    list.push_back(std::move(row));
  }
  return list;
}

std::string fixed(double value) {
  std::string text = std::to_string(value);
  return text.substr(0, text.find('.') + 2);
}

std::string ceilings_text(const Json& ceilings) {
  TextTable table({Align::left, Align::left, Align::right, Align::right});
  table.add({"", "scheme", "reads GB/s", "dot GFLOP/s"});
  for (const Json& row : ceilings) {
    const std::string scheme = row["scheme"];
    if (row.contains("fault")) {
      table.add({"", scheme, row["fault"], ""});
    } else {
      table.add({"", scheme, fixed(row["read_gbytes_per_s"]), fixed(row["dot_gflops"])});
    }
  }
  return table.str();
}

std::string text_of(const Json& report) {
  TextTable machine({Align::left, Align::left});
  for (const auto& [key, value] : report["machine"].items()) machine.add({key, value});
  std::string text = machine.str() + "\n";
  for (const Json& backend : report["backends"]) {
    const std::string detail = backend["detail"], remedy = backend["remedy"];
    text += "backend " + backend["name"].get<std::string>() + ": " +
            (backend["present"].get<bool>() ? "present, " : "absent, ") + detail + "\n";
    if (!remedy.empty()) text += "  to get it: " + remedy + "\n";
    if (backend.contains("device")) {
      text += "  device key: " + backend["device"].get<std::string>() + "\n";
    }
    if (backend.contains("ceilings")) text += ceilings_text(backend["ceilings"]);
  }
  text += report["warnings"].empty() ? "\nnothing here makes measurements noisy\n"
                                     : "\nwhat makes measurements noisy here:\n";
  for (const Json& warning : report["warnings"]) text += "  " + warning.get<std::string>() + "\n";
  return text;
}

int doctor(const DoctorOptions& o, const Environment& environment) {
  if (!o.calibrate.suite.empty()) return calibrate_suite(o.calibrate, o.json, environment);
  const MachineFacts facts = read_machine_facts("/");
  // Before the ceilings are measured: they are a load themselves.
  const std::vector<std::string> warnings = noise_warnings(facts);
  const Json report = {{"machine", facts_json(facts)},
                       {"backends", backends_json(o, environment)},
                       {"warnings", warnings}};
  environment.out << (o.json ? strict_json(report) + "\n" : text_of(report));
  const bool any = std::ranges::any_of(
      environment.backends, [](const Backend* backend) { return backend->availability().present; });
  if (!any) environment.err << "moegauge: no backend is present, so nothing can be measured\n";
  return any ? exit_ok : exit_no_verdict;
}

}  // namespace

Action add_doctor(CLI::App& subcommand) {
  auto options = std::make_shared<DoctorOptions>();
  declare_options(subcommand, *options);
  return [options](const Environment& environment) { return doctor(*options, environment); };
}

}  // namespace moegauge
