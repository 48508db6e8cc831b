// Measures the points of one group of cases in turn and keeps what they share: loaded weights,
// ceilings, truths. Runs inside a worker process (harness/worker) but knows nothing of processes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "harness/measure/prepare.h"
#include "harness/measure/timed_run.h"
#include "harness/result/record.h"

namespace moegauge {

struct MeasureSettings {
  std::uint64_t seed = 0;
  StoppingRule stopping;
  double row_seconds = 0.004;  // the least that one row lasts
  // Against which a quick look is willing to trade cold caches: writing many GiB of weight sets for
  // the first time can take far longer than all else. Records say how many sets there were.
  std::int64_t max_weight_sets = 1024;
  std::int64_t max_weight_bytes = std::int64_t{1} << 62;  // of all sets; one set is always had
  bool stages = false;  // each ok case's stage times too, where its backend can tell them
  int unit_spread = 0;  // of generated_experts; not 0 in mutation tests
  // Where to write what each case was given and gave, parallel to the cases; empty: nowhere.
  std::vector<std::filesystem::path> dumps = {};
};

// What a case is doing, so that a fault that takes the process down can be named. `check` holds the
// first launch: a fault before it is one of set-up. `truth` draws inputs and runs the oracle: no
// kernel is at work, so that a fault there is the harness's own.
enum class Phase : std::uint8_t { prepare, load, plan, truth, check, dump, time };
// No kernel is at work: what goes wrong then is the harness's or the machine's fault.
constexpr bool is_ours(Phase phase) { return phase == Phase::truth || phase == Phase::dump; }
std::string_view to_string(Phase phase);

// Streams of one seed's draws: the check's pool, then one per slot of timed inputs.
inline constexpr std::uint64_t kCheckStream = 0, kFirstTimedStream = 1;
inline constexpr std::uint64_t kStreamsPerDraw = 1 << 16;  // more than there are slots

Cache cache_from(const std::string& coordinate);
// Of the sets of weights that a session's cases want, as many as its settings, the device's memory
// and what this process may still take allow: a number that choose_weight_sets gives.
std::int64_t weight_sets_to_load(const MeasureSettings& settings, const Device& device,
                                 std::int64_t wanted, double bytes_per_set);
Unmeasured unmeasured(Status status, std::string reason);
Unmeasured inaccurate(std::string reason, CheckResult check);

// The backend and config that a case came to; nullptr where it did not get that far.
struct Resolved {
  const Backend* backend = nullptr;
  const ConfigRecord* config = nullptr;
};

// What may differ from one measuring of a point to the next.
struct PointSettings {
  std::optional<StoppingRule> stopping = {};  // instead of the session's
  std::uint64_t draw = 0;  // of the timed inputs: another number, fresh rows and routing
};

class Session {
 public:
  using InFlight = std::function<void(std::size_t case_index, Phase phase)>;

  // What sessions of every kind are made of.
  struct Setup {
    std::vector<CaseCoordinates> cases;
    std::filesystem::path root;
    std::span<const Backend* const> backends;
    MeasureSettings settings;
    InFlight in_flight;
  };

  struct Finished {
    std::size_t index = 0;
    CaseRecord record;
    bool launched = false;  // the case's kernel had been launched when the record was made
  };
  struct PointResult {
    std::vector<Finished> records;
    // A kernel failed after its first launch: this process must not measure on, and members
    // without a record are for another one.
    bool tainted = false;
  };

  virtual ~Session() = default;
  // Checks and times the cases with these indices, members of one point, together.
  PointResult measure(std::span<const std::size_t> members, const PointSettings& settings = {});
  // Compiles what these cases will run, many at once; what fails will fail again when measured.
  void compile_ahead(std::span<const std::size_t> members);

 protected:
  explicit Session(Setup setup) : setup_(std::move(setup)) {}

  virtual void measure_into(PointResult& result, std::span<const std::size_t> members) = 0;
  virtual void compile_cases(std::span<const std::size_t>) {}

  const CaseCoordinates& at(std::size_t index) const { return setup_.cases[index]; }
  void enter(std::size_t index, Phase phase);
  Finished finish_unprepared(std::size_t index, Unprepared unprepared) const;
  Finished finish(std::size_t index, std::variant<Measured, Unmeasured> outcome,
                  const Resolved& resolved = {}) const;

  // Times rivals that passed their check, and checks them again. `pilot` and `check_again` are
  // asked of each rival.
  template <typename Rival, typename Pilot, typename CheckAgain>
  void time_rivals(std::vector<Rival>& rivals, const Pilot& pilot, const CheckAgain& check_again,
                   PointResult& result);

  const Setup setup_;
  PointSettings point_settings_ = {};  // of the present point

 private:
  std::size_t current_ = 0;  // the case in flight, and what it does
  Phase phase_ = Phase::prepare;
};

// The session of cases that agree in all but backend, config, tokens, routing and launch: of a
// single op, or of whole layers. Throws InputError.
std::unique_ptr<Session> make_session(Session::Setup setup);

// The status of a case that ended in a device's fault.
Unmeasured from_fault(const Fault& fault);
// A wrong number is a finding about a kernel, everything else an accident after a launch.
bool taints(const Unmeasured& outcome);

template <typename Rival, typename Pilot, typename CheckAgain>
void Session::time_rivals(std::vector<Rival>& rivals, const Pilot& pilot,
                          const CheckAgain& check_again, PointResult& result) {
  const auto failed = [&](const Rival& rival, const Unmeasured& outcome) {
    result.tainted = taints(outcome);
    result.records.push_back(finish(rival.index(), outcome, rival.resolved()));
  };
  std::vector<Member> members;
  for (Rival& rival : rivals) {
    enter(rival.index(), Phase::time);
    if (const auto fault = pilot(rival)) return failed(rival, from_fault(*fault));
    members.push_back(rival.member(case_id(at(rival.index()))));
  }
  Rounds rounds = measure_rounds(
      members, point_settings_.stopping.value_or(setup_.settings.stopping), setup_.settings.seed,
      [&](std::size_t row) { enter(rivals[row].index(), Phase::time); });
  if (rounds.failure) {
    return failed(rivals[rounds.failure->member], from_fault(rounds.failure->fault));
  }
  for (std::size_t i = 0; i < rivals.size(); ++i) {
    Rival& rival = rivals[i];
    enter(rival.index(), Phase::check);
    if (auto outcome = check_again(rival)) {
      failed(rival, std::move(*outcome));
      if (result.tainted) return;
      continue;
    }
    result.records.push_back(finish(rival.index(),
                                    rival.measured(std::move(rounds.members[i]), rounds.rounds),
                                    rival.resolved()));
  }
}

}  // namespace moegauge
