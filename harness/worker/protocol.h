// What parent and worker say to each other: one JSON value per line, over pipes of their own, so
// that a kernel that prints on stdout corrupts nothing.
//
//   parent -> worker   a Job, then Requests, one per point; end of file: leave
//   worker -> parent   a Reply per record, then one that ends the request
//
// Which case is in flight is not sent but written to a page that both map: a row lasts a few
// milliseconds, and a message before each would wake the parent on a core that is being measured.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/measure/session.h"
#include "harness/result/record.h"
#include "harness/suite/suite.h"

namespace moegauge {

// Cases of one Session and how to measure them.
struct Job {
  std::vector<CaseCoordinates> cases;
  MeasureSettings settings;
};

struct Request {
  enum class Kind : std::uint8_t { measure, compile } kind = Kind::measure;
  // Indices into the job's cases: one point, or what is to be compiled ahead.
  std::vector<std::size_t> members = {};
  PointSettings settings = {};
};

struct Reply {
  // A finished case ...
  std::optional<std::size_t> index = {};
  std::optional<CaseRecord> record = {};
  bool launched = false;  // Session::Finished
  // ... or the end of the point.
  bool point_done = false;
  bool tainted = false;  // Session::PointResult
};

std::string to_line(const Job& job);
std::string to_line(const Request& request);
std::string to_line(const Reply& reply);
// Throw InputError where a line is not what it should be: parent and worker are the same binary, so
// that this means a kernel wrote into the pipe.
Job job_from(std::string_view line);
Request request_from(std::string_view line);
Reply reply_from(std::string_view line);

// The shared page. Each side may be killed at any moment, so it is two lock-free numbers.
struct InFlightPage {
  static constexpr std::uint32_t kNothing = 0xFFFF'FFFF;
  std::atomic<std::uint32_t> case_index;
  std::atomic<std::uint32_t> phase;
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
};

}  // namespace moegauge
