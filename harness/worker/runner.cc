#include "harness/worker/runner.h"

#include <algorithm>
#include <cmath>

#include "harness/worker/point_runner.h"
#include "harness/worker/schedule.h"

namespace moegauge {

std::size_t cases_to_measure(const std::vector<CaseCoordinates>& cases,
                             const std::vector<std::optional<CaseRecord>>& records) {
  std::size_t count = 0;
  for (const Group& group : schedule(cases)) {
    for (const auto& point : group.points)
      count += members_to_measure(group, point, records).size();
  }
  return count;
}

std::filesystem::path dump_file(const std::filesystem::path& dump, const CaseCoordinates& c) {
  constexpr std::size_t most_shown = 180;  // of what a file system takes, with room for the rest
  const std::string id = case_id(c);
  std::string shown = id.size() > most_shown ? id.substr(id.size() - most_shown) : id;
  for (char& ch : shown) {
    const bool plain = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
                       (ch >= '0' && ch <= '9') || ch == '.' || ch == '-' || ch == '=';
    if (!plain) ch = '_';
  }
  return dump / ("case-" + shown + "-" + text_hash8(id) + ".safetensors");
}

void run_cases(const std::vector<CaseCoordinates>& cases,
               std::vector<std::optional<CaseRecord>>& records, const RunnerSettings& settings,
               const RunnerHooks& hooks) {
  PointRunner runner(cases, records, settings, hooks);
  const std::vector<Group> whole = schedule(cases);
  // Slices load a group's weights again each time, for the sake of the other groups.
  const bool in_one = std::isinf(settings.budget_seconds) || whole.size() == 1;
  for (const Group& group : in_one ? whole : in_slices(whole)) {
    for (const auto& point : group.points) runner.run_point(group, point);
    runner.leave_group();
  }
}

}  // namespace moegauge
