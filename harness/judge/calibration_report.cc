#include "harness/judge/calibration_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/judge/numbers.h"
#include "harness/judge/text_table.h"

namespace moegauge {
namespace {

using SpreadOfCase = std::pair<std::string, CaseCalibration>;

std::vector<SpreadOfCase> noisiest_first(const std::map<std::string, CaseCalibration>& cases) {
  std::vector<SpreadOfCase> list(cases.begin(), cases.end());
  std::stable_sort(list.begin(), list.end(), [](const SpreadOfCase& a, const SpreadOfCase& b) {
    return a.second.between > b.second.between;
  });
  return list;
}

double median_spread(const std::vector<SpreadOfCase>& sorted) {
  const std::size_t n = sorted.size();
  return (sorted[(n - 1) / 2].second.between + sorted[n / 2].second.between) / 2;
}

std::string spread_conclusion(const std::vector<SpreadOfCase>& sorted) {
  const double median = median_spread(sorted), most = sorted.front().second.between;
  std::string text = "processes differ by " + format_percent(median) +
                     " (median of the cases), at most by " + format_percent(most) + "\n";
  // Twice as noisy as most is no chance: with 8 processes a spread is known to a quarter.
  const auto noisy = std::count_if(sorted.begin(), sorted.end(), [median](const SpreadOfCase& e) {
    return e.second.between > 2 * median;
  });
  if (noisy > 0) {
    text += "noisiest, above twice that median: the first " + std::to_string(noisy) +
            " of the table; changes there must be larger to be seen\n";
  }
  return text;
}

}  // namespace

std::string text_report(const Calibration& calibration) {
  std::string text;
  for (const auto& [device, cases] : calibration) {
    if (cases.empty()) continue;
    const std::vector<SpreadOfCase> sorted = noisiest_first(cases);
    TextTable table({Align::right, Align::right, Align::right, Align::left});
    table.add({"between", "within", "n", "case"});
    for (const auto& [id, one] : sorted) {
      table.add({format_percent(one.between), format_percent(one.within),
                 std::to_string(one.processes), id});
    }
    text += "device " + device + "\n" + table.str() + spread_conclusion(sorted);
  }
  return text;
}

nlohmann::ordered_json json_report(const Calibration& calibration) {
  using Json = nlohmann::ordered_json;
  Json devices = Json::array();
  for (const auto& [device, cases] : calibration) {
    Json list = Json::array();
    for (const auto& [id, one] : cases) {
      list.push_back({{"id", id},
                      {"between", one.between},
                      {"within", one.within},
                      {"processes", one.processes}});
    }
    devices.push_back({{"device", device}, {"cases", std::move(list)}});
  }
  return {{"schema", "moegauge.calibration/1"}, {"devices", std::move(devices)}};
}

}  // namespace moegauge
