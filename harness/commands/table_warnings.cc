#include "harness/commands/table_warnings.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "harness/config_table.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

// Records name a table by its path under the root where it lies there.
std::vector<std::string> warnings_of(const std::string& file, const fs::path& root) {
  std::error_code ignored;
  const fs::path under_root = root / file;
  try {
    return load_config_table(fs::exists(under_root, ignored) ? under_root : fs::path(file))
        .warnings;
  } catch (const InputError&) {
    return {};  // gone since the case was measured
  }
}

}  // namespace

std::vector<std::string> table_warnings(const Result& result, const fs::path& root) {
  std::vector<std::string> warnings;
  std::set<std::string> said;
  const auto add = [&](const std::string& file, const std::string& what) {
    const std::string text = file + ": " + what;
    if (said.insert(text).second) warnings.push_back(text);
  };
  std::set<std::string> read;
  for (const CaseRecord& record : result.cases) {
    const std::string& file = record.config.file;
    if (file.empty()) continue;
    for (const std::string& stale : record.config.stale) add(file, "stale, " + stale);
    if (!read.insert(file).second) continue;
    for (const std::string& warning : warnings_of(file, root)) add(file, warning);
  }
  return warnings;
}

std::string warm_weights_warning(const Result& result) {
  std::size_t cases = 0;
  std::string example;
  for (const CaseRecord& record : result.cases) {
    if (record.measured() == nullptr || record.coordinates.cache == "hot") continue;
    const auto& telemetry = record.measured()->telemetry;
    if (!telemetry.is_object()) continue;
    const std::int64_t sets = telemetry.value("weight_sets", std::int64_t{0});
    const std::int64_t wanted = telemetry.value("weight_sets_for_cold", std::int64_t{0});
    if (sets >= wanted) continue;
    if (cases++ == 0) {
      example = std::to_string(sets) + " sets of weights took turns and cold ones need " +
                std::to_string(wanted) + " in " + record.id();
    }
  }
  if (cases == 0) return "";
  return example + (cases > 1 ? " and " + std::to_string(cases - 1) + " more" : "") +
         ": read from the cache in part, it may be faster than in a whole run";
}

std::string ceilings_warning(const Result& result) {
  constexpr double kAlike = 1.2;
  std::map<std::string, std::pair<double, double>> rates;  // of each backend: least, most
  for (const CaseRecord& record : result.cases) {
    if (record.measured() == nullptr || !record.measured()->telemetry.is_object()) continue;
    const double rate = record.measured()->telemetry.value("read_gbytes_per_s", 0.0);
    if (rate <= 0) continue;
    const auto [entry, added] = rates.try_emplace(record.backend, rate, rate);
    auto& [least, most] = entry->second;
    least = std::min(least, rate);
    most = std::max(most, rate);
  }
  for (const auto& [backend, range] : rates) {
    if (range.second <= kAlike * range.first) continue;
    std::array<char, 64> text;
    std::snprintf(text.data(), text.size(), " read %.3g to %.3g GB/s", range.first, range.second);
    return backend + text.data() +
           " beside its cases: fractions of the floor do not compare between them; something else "
           "used the machine meanwhile";
  }
  return "";
}

}  // namespace moegauge
