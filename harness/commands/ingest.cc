#include "harness/commands/ingest.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "harness/commands/output_place.h"
#include "harness/endtoend/ingest.h"
#include "harness/judge/numbers.h"
#include "harness/judge/text_table.h"
#include "harness/result/benchmark_rows.h"
#include "harness/result/result_io.h"
#include "reference/base/input_error.h"
#include "reference/base/text_file.h"

namespace moegauge {
namespace {

struct IngestCommand {
  std::vector<std::string> files, labels;
  std::string out;
  std::string machine;
  std::int64_t gpus = 0, questions = 0;
  IngestOptions how;
};

void declare_options(CLI::App& app, IngestCommand& o) {
  app.add_option("FILE", o.files, "Result files of other tools, or pasted text")->required();
  app.add_option("--out", o.out, "Result file to write")->required();
  app.add_option(
      "--variant", o.how.variant,
      "Only rows of this variant: a column of a table, or 1, 2, ... of what stands there "
      "several times");
  app.add_option("--model", o.how.model, "Name of the model, in place of what the files say");
  app.add_option("--label", o.labels,
                 "What the files do not say of all of their rows, such as concurrency=4")
      ->type_name("NAME=VALUE");
  app.add_option("--gpus", o.gpus, "Number of GPUs that served: adds throughput per GPU")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--questions", o.questions,
                 "Number of questions that scores without standard error are the share of")
      ->check(CLI::Range(2, 1 << 30));
  app.add_option("--machine", o.machine, "Where it was measured, in words");
  app.footer(
      "Read by their form, whatever their names: results of lm-evaluation-harness and its "
      "--log_samples files;\nJSON of vLLM's bench serve, throughput and latency; pasted serving "
      "blocks, Throughput: and progress\nlines, tables of lm-evaluation-harness, tables by "
      "input-output length or concurrency. moegauge gate\njudges the result like any other. Exit "
      "codes: 0; 2 bad input.\n\n"
      "  moegauge ingest serve.json results.json samples_gsm8k_*.jsonl --gpus 8 --out now.json\n"
      "  moegauge ingest table.txt --variant Tuned --out tuned.json\n"
      "  moegauge ingest block.txt --model org/name --label input_output=1000-1000 --out now.json");
}

void add_labels(const std::vector<std::string>& given, IngestOptions& how) {
  for (const std::string& label : given) {
    const auto equals = label.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == label.size())
      throw InputError("--label " + label, "no name and value", "as in concurrency=4");
    const std::string name = label.substr(0, equals);
    if (name.find('/') != std::string::npos)
      throw InputError("--label " + label, "a name with a slash", "as in concurrency=4");
    if (!how.labels.emplace(name, label.substr(equals + 1)).second)
      throw InputError("--label " + label, name + " is given twice", "give each label once");
  }
}

// The machine that reads is not the one that measured, and the files do not describe that one.
nlohmann::ordered_json machine_not_known() {
  nlohmann::ordered_json machine = machine_context();
  machine["host_name"] = "";
  machine["executable"] = "";
  machine["num_cpus"] = 1;
  machine["mhz_per_cpu"] = 0;
  machine.erase("cpu_scaling_enabled");
  machine["caches"] = nlohmann::ordered_json::array();
  machine["load_avg"] = nlohmann::ordered_json::array();
  return machine;
}

// What to give `moegauge ingest` to get the same rows, as a JSON list: the order of the files and
// rows that --variant dropped count too, and no row tells of those.
std::string arguments_of(const IngestCommand& o) {
  nlohmann::ordered_json words = o.files;
  const auto add = [&words](const char* option, const std::string& value) {
    if (value.empty()) return;
    words.push_back(option);
    words.push_back(value);
  };
  add("--variant", o.how.variant);
  add("--model", o.how.model);
  for (const std::string& label : o.labels) add("--label", label);
  if (o.gpus > 0) add("--gpus", std::to_string(o.gpus));
  if (o.questions > 0) add("--questions", std::to_string(o.questions));
  add("--machine", o.machine);
  return words.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string row_table(const std::vector<EndToEndRow>& rows) {
  TextTable table({Align::left, Align::left, Align::left, Align::left});
  table.add({"point", "variant", "numbers", "from"});
  for (const EndToEndRow& row : rows) {
    std::string numbers;
    for (const auto& [name, value] : row.numbers) {
      numbers += (numbers.empty() ? "" : ", ") + name + " " + format_plain(value);
    }
    table.add({row.point(), row.variant(), numbers, row.source.text()});
  }
  return table.str();
}

int write_ingested(IngestCommand o, const Environment& environment) {
  add_labels(o.labels, o.how);
  if (o.gpus > 0) o.how.gpus = o.gpus;
  if (o.questions > 0) o.how.questions = o.questions;
  std::vector<NamedFile> taken;
  for (const std::string& file : o.files) taken.push_back({"an input", file});
  require_own_place("--out", o.out, taken);
  std::vector<NamedText> texts;
  for (const std::string& file : o.files) texts.push_back({file, read_text_file(file)});

  Result result;
  result.context = {{"moegauge_version", MOEGAUGE_VERSION},
                    {"suite", "ingest"},
                    {"ingest_arguments", arguments_of(o)},
                    {"measured_on", o.machine.empty() ? "not stated" : o.machine}};
  result.machine = machine_not_known();
  result.end_to_end = ingest(texts, o.how);
  write_result(o.out, result);
  environment.out << row_table(result.end_to_end);
  environment.err << "moegauge: " << o.out << ": " << result.end_to_end.size()
                  << (result.end_to_end.size() == 1 ? " row\n" : " rows\n");
  return exit_ok;
}

}  // namespace

Action add_ingest(CLI::App& subcommand) {
  auto o = std::make_shared<IngestCommand>();
  declare_options(subcommand, *o);
  return [o](const Environment& environment) { return write_ingested(*o, environment); };
}

}  // namespace moegauge
