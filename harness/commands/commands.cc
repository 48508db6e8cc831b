#include <array>

#include "harness/commands/command.h"
#include "harness/commands/compare.h"
#include "harness/commands/convert.h"
#include "harness/commands/doctor.h"
#include "harness/commands/evidence.h"
#include "harness/commands/explain.h"
#include "harness/commands/export.h"
#include "harness/commands/gate.h"
#include "harness/commands/history.h"
#include "harness/commands/ingest.h"
#include "harness/commands/list.h"
#include "harness/commands/merge.h"
#include "harness/commands/report.h"
#include "harness/commands/run.h"
#include "harness/commands/tune.h"
#include "harness/commands/worker.h"

namespace moegauge {

std::span<const Command> all_commands() {
  static constexpr std::array commands = {
      Command{"run", "Check and measure the cases of a suite, and write a result file", add_run},
      Command{"gate", "Judge a result against a baseline: pass, fail or no verdict", add_gate},
      Command{"compare", "Show two results side by side, and the rivals within each", add_compare},
      Command{"merge", "Put the shards of one run together", add_merge},
      Command{"history", "Keep results over time; show trends and where they changed", add_history},
      Command{"report", "Show results as one page of charts and tables", add_report},
      Command{"evidence", "Write results as a page for a pull request", add_evidence},
      Command{"export", "Write results in the formats of other tools", add_export},
      Command{"ingest", "Read serving and accuracy results of other tools, or pasted text",
              add_ingest},
      Command{"convert", "Convert MXFP8 weights of a checkpoint to block FP8", add_convert},
      Command{"tune", "Search the config that is best at each batch size, and write a tuned file",
              add_tune},
      Command{"list", "List backends, schemes, models, suites, configs, policies or ops", add_list},
      Command{"explain", "Say which backend would serve a layer, and why no other", add_explain},
      Command{"doctor", "Say what this machine offers, what is missing, what makes it noisy",
              add_doctor},
      Command{"worker", "", add_worker},
  };
  return commands;
}

}  // namespace moegauge
