#include "harness/worker/point_runner.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <system_error>
#include <utility>

#include "harness/measure/prepare.h"
#include "harness/worker/process.h"
#include "harness/worker/protocol.h"
#include "harness/worker/schedule.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kTick = 0.1;  // seconds between looks at the case in flight
// What one look can add to a case's time: while this process is stopped (Ctrl-Z, a frozen
// container, a sleeping machine) no time of the case passes.
constexpr double kMostPerLook = 1;
constexpr double kGrace = 2;  // seconds between SIGTERM and SIGKILL

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", seconds);
  return text;
}

// Faults that another attempt may not meet; a wrong answer or a refusal would come again.
bool is_fault(Status status) {
  return status == Status::crashed || status == Status::timeout ||
         status == Status::out_of_memory || status == Status::infrastructure ||
         status == Status::error;
}

}  // namespace

std::vector<std::size_t> members_to_measure(const Group& group,
                                            const std::vector<std::size_t>& point,
                                            const std::vector<std::optional<CaseRecord>>& records) {
  const auto record = [&](std::size_t member) -> const auto& {
    return records[group.cases[member]];
  };
  if (std::ranges::all_of(point, [&](std::size_t member) { return record(member).has_value(); })) {
    return {};
  }
  std::vector<std::size_t> members;
  std::ranges::copy_if(point, std::back_inserter(members), [&](std::size_t member) {
    return !record(member) || record(member)->measured();
  });
  return members;
}

PointRunner::PointRunner(const std::vector<CaseCoordinates>& cases,
                         std::vector<std::optional<CaseRecord>>& records,
                         const RunnerSettings& settings, const RunnerHooks& hooks)
    : cases_(cases),
      records_(records),
      settings_(settings),
      hooks_(hooks),
      attempts_(cases.size()),
      in_flight_seconds_(cases.size(), 0) {}

void PointRunner::leave_group() {
  load_deaths_.clear();
  retire_worker();
}

std::optional<std::string> PointRunner::stop_reason() const {
  if (hooks_.interrupted()) return "interrupted";
  if (seconds_since(start_) >= settings_.budget_seconds) return "budget";
  return std::nullopt;
}

void PointRunner::run_point(const Group& group, const std::vector<std::size_t>& point,
                            const PointSettings& how) {
  for (;;) {
    if (const auto reason = stop_reason()) return skip_missing(group, point, *reason);
    const std::vector<std::size_t> pending = members_to_measure(group, point, records_);
    if (pending.empty()) return;
    if (give_up_on_deadly_loads(group, pending)) continue;
    hooks_.started(cases_[group.cases[pending.front()]]);
    progressed_ = false;
    measure(group, pending, how);
    if (!progressed_ && !hooks_.interrupted()) {
      end_worker();
      const std::size_t missing = group.cases[*std::ranges::find_if(
          pending, [&](std::size_t member) { return !records_[group.cases[member]]; })];
      fail(missing, Status::error, "the worker gave no record", Phase::check);
    }
  }
}

// Cases of one backend share the loading of weights: where that has taken two processes down, it
// would take down one per case, each after its whole time limit. True where any was given up.
bool PointRunner::give_up_on_deadly_loads(const Group& group,
                                          const std::vector<std::size_t>& pending) {
  bool any = false;
  for (const std::size_t member : pending) {
    const std::size_t index = group.cases[member];
    const auto deaths = load_deaths_.find(cases_[index].backend);
    if (records_[index] || deaths == load_deaths_.end() || deaths->second.count < 2) continue;
    fail(index, deaths->second.status, deaths->second.reason + ", as twice before; not tried again",
         Phase::check);
    any = true;
  }
  return any;
}

void PointRunner::measure(const Group& group, const std::vector<std::size_t>& members,
                          const PointSettings& how) {
  if (std::exchange(fresh_worker_wanted_, false)) retire_worker();
  for (const std::size_t member : members) in_flight_seconds_[group.cases[member]] = 0;
  finished_.clear();
  try {
    if (!worker_) start_worker(group);
    // A worker that is gone shows when it is read from.
    worker_->send(to_line(Request{.members = members, .settings = how}));
    follow(group, members);
  } catch (const std::system_error& error) {
    worker_.reset();
    fail(group.cases[members.front()], Status::infrastructure, error.what(), Phase::prepare);
  }
}

void PointRunner::compile_ahead(const Group& group, const std::vector<std::size_t>& members) {
  if (members.empty() || stop_reason()) return;
  try {
    if (!worker_) start_worker(group);
    worker_->send(to_line(Request{Request::Kind::compile, members, {}}));
    std::string line;
    auto last_look = Clock::now();
    for (double seconds = 0; seconds <= settings_.timeout_seconds;) {
      const auto event = worker_->read(line, kTick, &hooks_.wait_mask);
      if (event == LineReader::Event::line) return;
      if (event == LineReader::Event::closed || worker_->gone() || hooks_.interrupted()) break;
      seconds += std::min(kMostPerLook, seconds_since(std::exchange(last_look, Clock::now())));
    }
  } catch (const std::system_error&) {
  }
  end_worker();
}

void PointRunner::start_worker(const Group& group) {
  worker_ = WorkerProcess::start(&hooks_.wait_mask);
  Job job{{}, settings_.measure};
  for (const std::size_t index : group.cases) {
    job.cases.push_back(cases_[index]);
    if (!settings_.dump.empty()) {
      job.settings.dumps.push_back(dump_file(settings_.dump, cases_[index]));
    }
  }
  worker_->send(to_line(job));
}

// Takes replies until the point is done or the worker is no more.
void PointRunner::follow(const Group& group, const std::vector<std::size_t>& members) {
  std::string line;
  auto last_look = Clock::now();
  // A process that a kernel started and left behind may hold the reply pipe open: the worker's
  // own end counts, once nothing more was read after it.
  bool gone = false;
  for (;;) {
    const auto event = worker_->read(line, kTick, &hooks_.wait_mask);
    const std::size_t current = in_flight_case(group, members);
    in_flight_seconds_[current] +=
        std::min(kMostPerLook, seconds_since(std::exchange(last_look, Clock::now())));
    const bool silent = event == LineReader::Event::waited;
    if (event == LineReader::Event::closed || (gone && silent)) return worker_died(current);
    gone = silent && worker_->gone();
    if (hooks_.interrupted()) return end_worker();
    if (event == LineReader::Event::line) {
      if (take_reply(group, line, current)) return;
      continue;  // the case in flight may be another one now
    }
    if (in_flight_seconds_[current] > settings_.timeout_seconds) return timed_out(current);
  }
}

// True at the end of the point.
bool PointRunner::take_reply(const Group& group, const std::string& line, std::size_t current) {
  const auto not_ours = [&](const std::string& why) {
    end_worker();
    fail(current, Status::crashed, "the kernel wrote into the harness's own pipe: " + why,
         Phase::check);
    return true;
  };
  Reply reply;
  try {
    reply = reply_from(line);
  } catch (const InputError& error) {
    return not_ours(error.what());
  }
  if (reply.record && (!reply.index || *reply.index >= group.cases.size())) {
    return not_ours("a record of no case of this layer");
  }
  if (reply.record) {
    accept_or_retry(group.cases.at(*reply.index), std::move(*reply.record), !reply.launched);
    return false;
  }
  if (reply.tainted) end_worker();
  return true;
}

std::size_t PointRunner::in_flight_case(const Group& group,
                                        const std::vector<std::size_t>& members) const {
  const auto in_flight = worker_->in_flight();
  const bool known = in_flight.case_index && std::ranges::count(members, *in_flight.case_index) > 0;
  return group.cases[known ? *in_flight.case_index : members.front()];
}

void PointRunner::worker_died(std::size_t current) {
  const Phase phase = worker_->in_flight().phase;
  const Ending ending = worker_->ending();
  worker_.reset();
  const std::string reason = describe(ending) + " while " + std::string(to_string(phase));
  const Status status = ending.out_of_memory ? Status::out_of_memory : Status::crashed;
  died(current, status, reason, phase);
}

void PointRunner::timed_out(std::size_t current) {
  if (std::ranges::count(finished_, current) > 0) return end_worker();  // what came after it hangs
  const Phase phase = worker_->in_flight().phase;
  const bool terminated = worker_->terminate(kGrace);
  worker_.reset();
  died(current, Status::timeout,
       "not done after " + seconds_text(settings_.timeout_seconds) + ", stopped while " +
           std::string(to_string(phase)) +
           (terminated ? " with SIGTERM" : " with SIGKILL, since SIGTERM was not heeded"),
       phase);
}

void PointRunner::died(std::size_t index, Status status, std::string reason, Phase phase) {
  if (is_ours(phase)) {
    // No kernel was at work.
    status = Status::infrastructure;
    reason = "the harness's own fault: " + reason;
  }
  if (phase == Phase::load) {
    LoadDeath& death = load_deaths_[cases_[index].backend];
    ++death.count;
    death.status = status;
    death.reason = reason;
  }
  fail(index, status, std::move(reason), phase);
}

void PointRunner::retire_worker() {
  if (worker_) worker_->leave();
  worker_.reset();
}

void PointRunner::end_worker() {
  if (worker_) worker_->terminate(kGrace);
  worker_.reset();
}

CaseRecord PointRunner::unmeasured_record(std::size_t index, Status status,
                                          std::string reason) const {
  CaseRecord record;
  record.coordinates = cases_[index];
  record.backend = cases_[index].backend;
  record.seed = settings_.measure.seed;
  record.config.source = config_source(cases_[index].config);
  record.outcome = Unmeasured{status, std::move(reason), std::nullopt};
  return record;
}

void PointRunner::fail(std::size_t index, Status status, std::string reason, Phase phase) {
  accept_or_retry(index, unmeasured_record(index, status, std::move(reason)), phase < Phase::check);
}

void PointRunner::accept_or_retry(std::size_t index, CaseRecord record, bool before_launch) {
  progressed_ = true;
  if (is_fault(record.status()) && before_launch &&
      attempts_[index].size() < static_cast<std::size_t>(settings_.retries)) {
    const auto& outcome = std::get<Unmeasured>(record.outcome);
    attempts_[index].push_back(std::string(to_string(outcome.status)) + ": " + outcome.reason);
    fresh_worker_wanted_ = true;  // the next attempt starts from nothing
    return;
  }
  records_[index] = completed(index, std::move(record));
  finished_.push_back(index);
  hooks_.finished(*records_[index]);
}

// Of a point that lost a member only that one is missing; its rivals keep what they have.
void PointRunner::skip_missing(const Group& group, const std::vector<std::size_t>& point,
                               const std::string& reason) {
  for (const std::size_t member : point) {
    const std::size_t index = group.cases[member];
    if (records_[index]) continue;
    records_[index] = completed(index, unmeasured_record(index, Status::skipped, reason));
  }
}

CaseRecord PointRunner::completed(std::size_t index, CaseRecord record) const {
  record.attempts = attempts_[index];
  record.repro = hooks_.repro(record.coordinates);
  return record;
}

}  // namespace moegauge
