// Results as one page of Markdown for a pull request: what was compared, on what, the tables, the
// verdicts, how to repeat it, and what it does not show.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/report/rows.h"

namespace moegauge {

// Where pull requests take 65,536 characters; whatever the input, a page stays under it.
inline constexpr std::size_t evidence_page_bytes = 60'000;

// `judgements` holds one per file, or nothing where there is no baseline.
std::string evidence_page(const ReportInput& input, const std::vector<Judgement>& judgements);

}  // namespace moegauge
