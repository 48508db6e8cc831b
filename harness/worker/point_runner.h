// Measures points of one layer and scheme after the other, in a worker process that it keeps, and
// turns every way in which a process can end into a record.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/session.h"
#include "harness/result/record.h"
#include "harness/suite/suite.h"
#include "harness/worker/process.h"
#include "harness/worker/runner.h"
#include "harness/worker/schedule.h"

namespace moegauge {

// Rivals are compared on rounds that they shared: where a member of a point has no record, its ok
// rivals are measured once more with it. They keep the records that they have until then.
std::vector<std::size_t> members_to_measure(const Group& group,
                                            const std::vector<std::size_t>& point,
                                            const std::vector<std::optional<CaseRecord>>& records);

class PointRunner {
 public:
  // All are kept by reference; `records` is parallel to `cases`. The budget of the settings begins.
  PointRunner(const std::vector<CaseCoordinates>& cases,
              std::vector<std::optional<CaseRecord>>& records, const RunnerSettings& settings,
              const RunnerHooks& hooks);

  // Until every member of the point has a record. The worker stays for the group's next point.
  void run_point(const Group& group, const std::vector<std::size_t>& point,
                 const PointSettings& how = {});
  // Has the worker compile for these members (positions in group.cases), many at once. Where that
  // takes the process down, or lasts as long as a case may, each meets the compiler when it is
  // measured.
  void compile_ahead(const Group& group, const std::vector<std::size_t>& members);
  // The next point is of another group.
  void leave_group();
  // Why nothing further is measured (an interrupt, the budget), or nothing.
  std::optional<std::string> stop_reason() const;

 private:
  // Cases of one backend share the loading of weights: where that has taken two processes down, it
  // would take down one per case, each after its whole time limit. True where any was given up.
  bool give_up_on_deadly_loads(const Group& group, const std::vector<std::size_t>& pending);
  void measure(const Group& group, const std::vector<std::size_t>& members,
               const PointSettings& how);
  void start_worker(const Group& group);
  // Takes replies until the point is done or the worker is no more.
  void follow(const Group& group, const std::vector<std::size_t>& members);
  // True at the end of the point.
  bool take_reply(const Group& group, const std::string& line, std::size_t current);
  std::size_t in_flight_case(const Group& group, const std::vector<std::size_t>& members) const;
  void worker_died(std::size_t current);
  void timed_out(std::size_t current);
  void died(std::size_t index, Status status, std::string reason, Phase phase);
  void retire_worker();
  void end_worker();
  CaseRecord unmeasured_record(std::size_t index, Status status, std::string reason) const;
  void fail(std::size_t index, Status status, std::string reason, Phase phase);
  void accept_or_retry(std::size_t index, CaseRecord record, bool before_launch);
  // Of a point that lost a member only that one is missing; its rivals keep what they have.
  void skip_missing(const Group& group, const std::vector<std::size_t>& point,
                    const std::string& reason);
  CaseRecord completed(std::size_t index, CaseRecord record) const;

  const std::vector<CaseCoordinates>& cases_;
  std::vector<std::optional<CaseRecord>>& records_;
  const RunnerSettings& settings_;
  const RunnerHooks& hooks_;
  std::vector<std::vector<std::string>> attempts_;
  std::vector<double> in_flight_seconds_;
  struct LoadDeath {
    int count = 0;
    Status status = Status::crashed;
    std::string reason;
  };
  std::map<std::string, LoadDeath> load_deaths_;  // of the present group, by backend
  std::unique_ptr<WorkerProcess> worker_;
  bool fresh_worker_wanted_ = false;
  std::vector<std::size_t> finished_;  // in the last measure()
  bool progressed_ = false;            // a record or an attempt came of the last measure()
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace moegauge
