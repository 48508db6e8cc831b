// How far a run is, on stderr: a bar that rewrites itself on a terminal, a line per case elsewhere.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>

#include "harness/result/record.h"

namespace moegauge {

enum class ProgressStyle : std::uint8_t { bar, lines, quiet };

class Progress {
 public:
  // `already` of the `cases` were done by an earlier run. There may turn out to be more cases.
  Progress(std::ostream& err, ProgressStyle style, std::size_t cases, std::size_t already);
  void started(const CaseCoordinates& c);
  void finished(const CaseRecord& record);
  // So many cases are done or need not be done.
  void advance_to(std::size_t cases) { done_ = std::max(done_, std::min(cases, cases_)); }
  // Removes the bar, so that what follows starts on a clean line.
  void clear();

 private:
  void draw(const std::string& id);

  std::ostream& err_;
  ProgressStyle style_;
  std::size_t cases_, already_, done_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// "ok 123.4 us", "inaccurate: error.implementation.relative_l2 0.5 exceeds 0.001".
std::string outcome_text(const CaseRecord& record);

}  // namespace moegauge
