#include "harness/judge/known_issues.h"

#include "harness/judge/findings.h"
#include "harness/suite/select.h"

namespace moegauge {
namespace {

// How many failures it covers.
std::size_t excuse(CaseVerdict& verdict, const KnownIssue& issue) {
  std::size_t covered = 0;
  for (Finding& finding : verdict.findings) {
    if (finding.verdict != Verdict::fail || !matches_glob(issue.subject, finding.subject)) continue;
    finding.verdict = Verdict::known_issue;
    finding.facts = "known until " + issue.expires + " (" + issue.reason + "): " + finding.facts;
    ++covered;
  }
  return covered;
}

void expire(CaseVerdict& verdict, const KnownIssue& issue) {
  verdict.findings.push_back({Verdict::fail, "known issue",
                              "the known issue (" + issue.reason + ") expired on " + issue.expires +
                                  ": mend it and take it out of the policy, or give it a new "
                                  "date on purpose"});
}

void apply(const KnownIssue& issue, Judgement& judgement, bool expired) {
  std::size_t cases = 0, covered = 0;
  for (CaseVerdict& verdict : judgement.cases) {
    if (!matches_glob(issue.match, verdict.id)) continue;
    ++cases;
    if (expired) {
      expire(verdict, issue);
    } else {
      covered += excuse(verdict, issue);
    }
  }
  const std::string which = "the known issue \"" + issue.match + "\" (" + issue.reason + ") ";
  if (cases == 0) {
    judgement.notes.push_back(which + "matches no case that was judged");
  } else if (!expired && covered == 0) {
    judgement.notes.push_back(which + "covered no failure: where that stays so, take it out");
  }
}

}  // namespace

void apply_known_issues(Judgement& judgement, const Policy& policy, const std::string& today) {
  for (const KnownIssue& issue : policy.known_issues) {
    // Dates of this form are in the order of their letters.
    apply(issue, judgement, issue.expires < today);
  }
  for (CaseVerdict& verdict : judgement.cases) settle(verdict);
}

}  // namespace moegauge
