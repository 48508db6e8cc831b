// Sessions of whole layers: cases of one layer x scheme share its weights.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "harness/measure/rival.h"
#include "harness/measure/session.h"
#include "harness/measure/truth_cache.h"
#include "harness/workload/workload.h"

namespace moegauge {

class LayerSession final : public Session {
 public:
  explicit LayerSession(Setup setup);

 private:
  using Residence = std::variant<std::unique_ptr<ResidentLayer>, Fault>;

  void measure_into(PointResult& result, std::span<const std::size_t> members) override;
  void compile_cases(std::span<const std::size_t> members) override;
  bool serves_graphs(const CaseCoordinates& c) const;
  const Point& point_of(const CaseCoordinates& c, bool graphs);
  Point draw_point(const CaseCoordinates& c, bool graphs) const;
  // A member that got as far as the timing, or its record.
  std::variant<Rival, Finished> admit(std::size_t index, const Point& point, bool& tainted);
  void dump(Rival& rival, const Point& point, const Truth& truth);
  Residence& reside(const PreparedCase& prepared);
  std::int64_t weight_sets_wanted(const PreparedCase& prepared) const;
  const Truth& truth_for(const Rival& rival, const Point& point);

  const Problem problem_;
  const std::unique_ptr<Workload> workload_;
  std::map<const Backend*, Residence> residences_;
  TruthCache truths_;
  // The last one drawn: a point that is measured again and again, as `tune` does, costs it once.
  std::string drawn_for_;
  std::optional<Point> drawn_;
};

}  // namespace moegauge
