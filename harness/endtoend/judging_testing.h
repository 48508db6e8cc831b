// For tests of verdicts on serving and accuracy: from fixtures or text to a judgement.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "harness/endtoend/ingest.h"
#include "harness/endtoend/judge_rows.h"
#include "harness/judge/judge_testing.h"
#include "reference/base/text_file.h"

namespace moegauge {

inline Result ingested_text(const std::string& text, const IngestOptions& options = {}) {
  const NamedText file{"p", text};
  return {.end_to_end = ingest(std::span(&file, 1), options)};
}

inline Result ingested(const std::vector<std::string>& names, const IngestOptions& options = {}) {
  std::vector<NamedText> files;
  for (const std::string& name : names)
    files.push_back({name, read_text_file("harness/endtoend/testdata/" + name)});
  return {.end_to_end = ingest(files, options)};
}

inline Policy policy_of(double band, double margin, bool controls = false) {
  Policy policy;
  policy.name = "test";
  policy.confidence = 0.95;
  policy.controls = controls;
  policy.serving = {{.band = band}};
  policy.accuracy = {{.margin = margin}};
  return policy;
}

inline Judgement judged_end_to_end(const Result& now, const Result& then, const Policy& policy,
                                   const std::string& filter = "*") {
  Judgement judgement{.policy = policy.name};
  judge_end_to_end(std::span(&now, 1), std::span(&then, 1), policy, filter, judgement);
  for (const CaseVerdict& verdict : judgement.cases) {
    for (const Finding& finding : verdict.findings) {
      EXPECT_TRUE(says_what_to_do(finding)) << verdict.id << ": " << finding.sentence();
    }
  }
  return judgement;
}

}  // namespace moegauge
