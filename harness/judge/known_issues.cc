#include "harness/judge/known_issues.h"

#include "harness/judge/findings.h"
#include "harness/suite/select.h"

namespace moegauge {
namespace {

void excuse(CaseVerdict& verdict, const KnownIssue& issue) {
  for (Finding& finding : verdict.findings) {
    if (finding.verdict != Verdict::fail || !matches_glob(issue.subject, finding.subject)) continue;
    finding.verdict = Verdict::known_issue;
    finding.sentence =
        "known until " + issue.expires + " (" + issue.reason + "): " + finding.sentence;
  }
}

}  // namespace

void apply_known_issues(Judgement& judgement, const Policy& policy, const std::string& today) {
  for (CaseVerdict& verdict : judgement.cases) {
    for (const KnownIssue& issue : policy.known_issues) {
      if (!matches_glob(issue.match, verdict.id)) continue;
      // Dates of this form are in the order of their letters.
      if (today <= issue.expires) {
        excuse(verdict, issue);
        continue;
      }
      verdict.findings.push_back({Verdict::fail, "known issue",
                                  "the known issue (" + issue.reason + ") expired on " +
                                      issue.expires +
                                      ": mend it and take it out of the policy, or give it a new "
                                      "date on purpose"});
    }
    settle(verdict);
  }
}

}  // namespace moegauge
