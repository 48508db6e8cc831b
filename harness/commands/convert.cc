#include "harness/commands/convert.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "harness/commands/interrupt.h"
#include "harness/tensors/convert_checkpoint.h"

namespace moegauge {
namespace {

struct ConvertCommand {
  std::string in, out, to, flavor;
  std::vector<std::int64_t> block = {128, 128};
  bool allow_nonfinite = false, sync = false;
};

void declare_options(CLI::App& app, ConvertCommand& o) {
  app.add_option("IN", o.in, "A .safetensors file, an index of shards, or a folder with either")
      ->required();
  app.add_option("OUT", o.out, "The new file, or the new folder where IN is a folder or an index")
      ->required();
  app.add_option("--to", o.to, "What to convert to")
      ->required()
      ->check(CLI::IsMember({"fp8_block"}));
  app.add_option("--flavor", o.flavor, "E4M3 as in the OCP formats, or as FNUZ (gfx94x)")
      ->required()
      ->check(CLI::IsMember({"ocp", "fnuz"}));
  app.add_option("--block", o.block, "Rows and columns under one scale [128,128]")
      ->delimiter(',')
      ->expected(2)
      ->check(CLI::Range(std::int64_t{1}, max_block_extent));
  app.add_flag("--allow-nonfinite", o.allow_nonfinite,
               "Convert tensors that hold NaN or infinity too");
  app.add_flag("--sync", o.sync,
               "Wait until a new OUT is on the disk, as for one that is replaced");
  app.footer(
      "Converts MXFP8 to block FP8: every F8_E4M3 tensor NAME [.., rows, cols] with E8M0 scales\n"
      "[.., rows, cols/32] (dtype F8_E8M0 or U8; called NAME_scale, NAME_scale_inv, NAME.scale,\n"
      "NAME.scale_inv or, for STEM.weight, STEM.scale or STEM.scale_inv) keeps its name, and\n"
      "NAME_scale_inv (F32, a scale per block) takes the place of its scales. All other tensors "
      "and\n"
      "the metadata are copied byte for byte; other files of a folder are not. OUT appears, or\n"
      "replaces an older OUT, when all is written.\n"
      "Prints each tensor's relative reconstruction error. Exit codes: 0 converted; 2 bad input, "
      "nothing\nto convert, or values that are not finite.");
}

std::string shown(const std::string& name, std::span<const std::int64_t> shape,
                  const BlockConversion& sums) {
  std::string text = name;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    text += (d == 0 ? " [" : ", ") + std::to_string(shape[d]) + (d + 1 == shape.size() ? "]" : "");
  }
  char error[32];
  std::snprintf(error, sizeof error, "%.6f", sums.relative_error());
  text += std::string(": relative error ") + error;
  if (sums.non_finite > 0) text += ", " + std::to_string(sums.non_finite) + " values not finite";
  return text;
}

// Ctrl-C or SIGTERM. Both are blocked while an InterruptGuard lives, and so seen as pending.
struct Interrupted {};

void throw_if_interrupted() {
  sigset_t pending;
  sigpending(&pending);
  if (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1)
    throw Interrupted();
}

int convert(const ConvertCommand& o, const Environment& environment) {
  ThreadPool pool(ThreadPool::usable_processors());
  const auto begin = std::chrono::steady_clock::now();
  const ConvertReport report = convert_checkpoint(
      o.in, o.out,
      {.target = {.block_rows = o.block[0], .block_cols = o.block[1], .fnuz = o.flavor == "fnuz"},
       .allow_non_finite = o.allow_nonfinite,
       .sync = o.sync,
       .before_write = throw_if_interrupted},
      pool, [&](const ConvertedTensor& tensor) {
        environment.out << shown(tensor.name, tensor.shape, tensor.sums) << '\n' << std::flush;
      });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  for (const std::string& note : report.notes) environment.err << "note: " << note << '\n';
  environment.out << shown("total", {}, report.total) << "; " << report.converted << " converted, "
                  << report.copied << " copied\n";
  char rate[64];
  std::snprintf(rate, sizeof rate, "%.2f GB in %.1f s",
                static_cast<double>(report.bytes_read) / 1e9, seconds.count());
  environment.err << "wrote " << o.out << " (read " << rate << ")\n";
  return exit_ok;
}

}  // namespace

Action add_convert(CLI::App& subcommand) {
  auto options = std::make_shared<ConvertCommand>();
  declare_options(subcommand, *options);
  return [options](const Environment& environment) {
    const InterruptGuard guard;  // its end lets a signal that came end the process as usual
    try {
      return convert(*options, environment);
    } catch (const Interrupted&) {  // the unfinished files are gone by now
      environment.err << "moegauge: interrupted; " << options->out << " is as it was\n";
      return static_cast<int>(exit_bad_input);
    }
  };
}

}  // namespace moegauge
