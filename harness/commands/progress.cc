#include "harness/commands/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ostream>

#include "harness/commands/duration.h"

namespace moegauge {
namespace {

std::size_t terminal_columns() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

}  // namespace

std::string outcome_text(const CaseRecord& record) {
  if (const Measured* measured = record.measured()) {
    char text[64];
    std::snprintf(text, sizeof text, "ok %.5g us", measured->latency.median);
    return text;
  }
  return std::string(to_string(record.status())) + ": " +
         std::get<Unmeasured>(record.outcome).reason;
}

Progress::Progress(std::ostream& err, ProgressStyle style, std::size_t cases, std::size_t already)
    : err_(err), style_(style), cases_(cases), already_(already), done_(already) {}

void Progress::started(const CaseCoordinates& c) {
  if (style_ == ProgressStyle::bar) draw(case_id(c));
}

void Progress::finished(const CaseRecord& record) {
  ++done_;
  cases_ = std::max(cases_, done_);
  if (style_ == ProgressStyle::bar) draw(record.id());
  if (style_ == ProgressStyle::lines) {
    err_ << '[' << done_ << '/' << cases_ << "] " << record.id() << "  " << outcome_text(record)
         << std::endl;
  }
}

void Progress::clear() {
  if (style_ == ProgressStyle::bar) err_ << "\r\x1b[K" << std::flush;
}

void Progress::draw(const std::string& id) {
  constexpr std::size_t width = 20;
  const std::size_t filled = width * done_ / std::max<std::size_t>(1, cases_);
  std::string line = "[" + std::string(filled, '=') + std::string(width - filled, ' ') + "] " +
                     std::to_string(done_) + "/" + std::to_string(cases_);
  if (done_ > already_ && done_ < cases_) {
    const double elapsed =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    line += " ETA " + duration_text(elapsed / static_cast<double>(done_ - already_) *
                                    static_cast<double>(cases_ - done_));
  }
  line += " " + id;
  err_ << '\r' << line.substr(0, terminal_columns() - 1) << "\x1b[K" << std::flush;
}

}  // namespace moegauge
