#include "harness/commands/history_add.h"

#include <ostream>

#include "harness/commands/history_options.h"
#include "harness/history/utc.h"

namespace moegauge {
namespace {

// Clocks of a fleet differ by less.
constexpr std::int64_t a_day = 86'400;

std::size_t mark_held(RunSummary& summary, const std::set<std::string>& held) {
  std::size_t count = 0;
  for (CaseSummary& one : summary.cases) {
    one.point.held = one.point.counts() && held.contains(one.id);
    count += one.point.held;
  }
  return count;
}

}  // namespace

void add_to_history(HistoryStore& store, const Result& result, const std::string& file,
                    const GivenCommit& given, const std::set<std::string>& held, std::ostream& out,
                    std::ostream& err) {
  RunSummary summary = summarise(result, given, file);
  const std::size_t back = mark_held(summary, held);
  const std::int64_t now = seconds_now();
  const HistoryStore::Added added = store.add(summary, who_is_this(), now);
  out << file << ": " << (added.already ? "is there already, as run " : "added as run ")
      << added.run;
  if (!added.already) {
    out << ", " << summary.run.ok_cases << " of " << summary.run.cases << " cases ok, "
        << utc_text(summary.run.time())
        << (summary.run.commit_time ? "" : " (run time: it names no commit)");
  }
  if (back > 0) {
    out << "; " << back << (back == 1 ? " case is" : " cases are")
        << " held back: no baseline unless accepted";
  }
  out << std::endl;
  if (summary.run.time() > now + a_day) {
    err << "moegauge: warning: " << file << " is of " << utc_text(summary.run.time())
        << ", which is yet to come, so that it stays the newest run until then; set the clock, and "
           "give --commit-time when adding\n";
  }
}

}  // namespace moegauge
