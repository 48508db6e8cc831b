// What `gate` and `compare` of two builds leave of their verdicts beside the text: files for other
// programs, and what GitHub shows.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "harness/commands/command.h"
#include "harness/commands/output_place.h"
#include "harness/judge/judge.h"
#include "harness/judge/report.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace moegauge {

struct VerdictOutputs {
  std::string markdown, junit;
  bool github = false;
  bool json = false;

  // --json leaves stdout to one document. GitHub reads annotations from stderr as well.
  std::ostream& beside(const Environment& environment) const;
};

// --markdown, --junit, --github; `with`: an option that they need, or null.
void add_verdict_outputs(CLI::App& app, VerdictOutputs& outputs, CLI::Option* with);
// Before anything is read, so that a wrong command line costs nothing.
void require_own_places(const VerdictOutputs& outputs, std::vector<NamedFile> taken);

void write_verdicts(const VerdictOutputs& outputs, const Judgement& judgement,
                    const ReportTitle& title, const Environment& environment);

}  // namespace moegauge
