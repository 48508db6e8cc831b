#include "harness/commands/merge.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "harness/commands/output_place.h"
#include "harness/result/result_io.h"
#include "harness/result/shards.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

struct MergeOptions {
  std::vector<std::string> shards;
  std::string out;
};

int merge(const MergeOptions& o, const Environment& environment) {
  std::vector<NamedFile> taken;
  for (const std::string& file : o.shards) taken.push_back({"a shard", file});
  require_own_place("--out", o.out, taken);
  std::vector<ShardFile> files;
  for (const std::string& file : o.shards) {
    LoadedResult loaded = load_result(file);
    if (loaded.truncated) {
      throw InputError(*loaded.truncated, "a part of a shard is none", "run that shard again");
    }
    files.push_back({.where = file, .result = std::move(loaded.result)});
  }
  const Result merged = merge_shards(std::move(files));
  make_folder_of(o.out);
  write_result(o.out, merged);
  environment.err << "wrote " << o.out << ": " << merged.cases.size() << " cases of "
                  << o.shards.size() << " shards\n";
  return exit_ok;
}

}  // namespace

Action add_merge(CLI::App& subcommand) {
  auto o = std::make_shared<MergeOptions>();
  subcommand
      .add_option("SHARD", o->shards, "Results of run --shard I/N, all N of them, in any order")
      ->required();
  subcommand.add_option("--out", o->out, "Result file to write")->required();
  subcommand.footer(
      "A shard that is missing, there twice, or of another suite, selection, seed or build is an\n"
      "error by its name. Exit codes: 0; 2 bad input, and nothing is written.\n\n"
      "  moegauge run suites/quick.json --shard 1/2 --out a.json\n"
      "  moegauge run suites/quick.json --shard 2/2 --out b.json\n"
      "  moegauge merge a.json b.json --out whole.json");
  return [o](const Environment& environment) { return merge(*o, environment); };
}

}  // namespace moegauge
