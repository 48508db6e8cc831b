// The series of a case under all its names, on one device.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/history/names.h"
#include "harness/history/store.h"

namespace moegauge {

using CaseOnDevice = std::pair<std::string, std::string>;  // the newest name, the device key
using Families = std::map<CaseOnDevice, std::vector<HistorySeries>>;

Families families_of(HistoryStore& store, const CaseNames& names);

// In order of time, the newest `most`.
std::vector<HistoryPoint> points_of(HistoryStore& store, const std::vector<HistorySeries>& family,
                                    std::size_t most);

// The anchor in force of each family that has one.
std::map<CaseOnDevice, HistoryAnchor> anchors_of(HistoryStore& store, const Families& families);
// Its points: the run that it names and those after it with the same kernel and config, as they
// were when that kernel was new; at most `most`. None where the run is not there any more.
std::vector<HistoryPoint> anchor_points(HistoryStore& store,
                                        const std::vector<HistorySeries>& family,
                                        const HistoryAnchor& anchor, std::size_t most);

}  // namespace moegauge
