// Measures the points of one layer x scheme in turn and keeps what they share: loaded weights,
// ceilings, truths. Runs inside a worker process (harness/worker) but knows nothing of processes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "harness/measure/rival.h"
#include "harness/measure/truth_cache.h"
#include "harness/result/record.h"
#include "harness/workload/workload.h"

namespace moegauge {

struct MeasureSettings {
  std::uint64_t seed = 0;
  StoppingRule stopping;
  double row_seconds = 0.004;  // the least that one row lasts
  // Against which a quick look is willing to trade cold caches: writing many GiB of weight sets for
  // the first time can take far longer than all else. Records say how many sets there were.
  std::int64_t max_weight_sets = 1024;
  int unit_spread = 0;  // of generated_experts; not 0 in mutation tests
  // Where to write what each case was given and gave, parallel to the cases; empty: nowhere.
  std::vector<std::filesystem::path> dumps = {};
};

// What a case is doing, so that a fault that takes the process down can be named. `check` holds the
// first launch: a fault before it is one of set-up. `truth` draws inputs and runs the oracle: no
// kernel is at work, so that a fault there is the harness's own.
enum class Phase : std::uint8_t { prepare, load, plan, truth, check, time };
std::string_view to_string(Phase phase);

class LayerSession {
 public:
  using InFlight = std::function<void(std::size_t case_index, Phase phase)>;

  // `cases` agree in all but backend, config, tokens, routing and launch. Throws InputError.
  LayerSession(std::vector<CaseCoordinates> cases, std::filesystem::path root,
               std::span<const Backend* const> backends, MeasureSettings settings,
               InFlight in_flight);

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
  // Checks and times the cases with these indices, members of one point, together.
  PointResult measure(std::span<const std::size_t> members);

 private:
  using Residence = std::variant<std::unique_ptr<ResidentLayer>, Fault>;

  void measure_into(PointResult& result, std::span<const std::size_t> members);
  bool serves_graphs(const CaseCoordinates& c) const;
  Point draw_point(const CaseCoordinates& c, bool graphs) const;
  // A member that got as far as the timing, or its record.
  std::variant<Rival, Finished> admit(std::size_t index, const Point& point, bool& tainted);
  void dump(Rival& rival, const Point& point, const Truth& truth) const;
  void time_rivals(std::vector<Rival>& rivals, const Point& point, PointResult& result);
  Residence& reside(const PreparedCase& prepared);
  std::int64_t weight_sets_wanted(const PreparedCase& prepared) const;
  const Truth& truth_for(const Rival& rival, const Point& point);
  void enter(std::size_t index, Phase phase);
  Finished finish_unprepared(std::size_t index, Unprepared unprepared) const;
  Finished finish(std::size_t index, std::variant<Measured, Unmeasured> outcome,
                  const PreparedCase* prepared) const;

  const std::vector<CaseCoordinates> cases_;
  const std::filesystem::path root_;
  const std::span<const Backend* const> backends_;
  const MeasureSettings settings_;
  const InFlight in_flight_;
  const Problem problem_;
  const std::unique_ptr<Workload> workload_;
  std::map<const Backend*, Residence> residences_;
  TruthCache truths_;
  std::size_t current_ = 0;  // the case in flight, and what it does
  Phase phase_ = Phase::prepare;
};

}  // namespace moegauge
