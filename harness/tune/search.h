// The search at one batch size: successive halving (K. Jamieson and A. Talwalkar, AISTATS 2016),
// every request interleaved with the default, the finalists measured again on fresh inputs.
//
// Where times come from is a function, so that nothing here knows of processes or clocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/measure/session.h"
#include "harness/result/record.h"
#include "harness/tune/key_plan.h"

namespace moegauge {

struct SearchSettings {
  // From the end of a key's first batch on: the first rung has half of them, all rungs three
  // quarters; finalists are measured in any case.
  double seconds_per_key = 15;
  std::size_t batch = 8;  // candidates measured together in the first rung
  std::size_t finalists = 2;
};

// Rivals that are checked and timed together at one batch size.
struct TuneRequest {
  std::string tag;  // unique within a run of tune: what the journal calls it
  std::int64_t tokens = 0;
  std::vector<std::string> configs;  // CaseCoordinates::config of each member
  PointSettings settings;
};

// The tag of a key's first request.
std::string first_tag(std::int64_t tokens);

struct Laboratory {
  // A record for each member, in their order; `skipped` where the run is at its end.
  std::function<std::vector<CaseRecord>(const TuneRequest&)> measure;
  std::function<double()> seconds;  // of a steady clock
};

struct KeyFindings {
  std::int64_t tokens = 0;
  bool complete = false;  // false: the run ended in between
  // Of the last request, on fresh inputs: the default, the incumbent if there is one, finalists.
  // Only the default's where no candidate looked faster and there is no incumbent.
  std::vector<CaseRecord> final = {};
  std::vector<CaseRecord> dropped = {};  // candidates without a latency, with their reasons
  std::size_t tried = 0;                 // candidates measured
  std::size_t untried = 0;               // for want of time
};

KeyFindings search_key(const KeyPlan& plan, const SearchSettings& settings,
                       const Laboratory& laboratory);

// About how many records search_key asks for at most: how long a bar is.
std::size_t records_at_most(const KeyPlan& plan, const SearchSettings& settings);

}  // namespace moegauge
