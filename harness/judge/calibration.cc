#include "harness/judge/calibration.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/json/cursor.h"
#include "harness/json/document.h"
#include "harness/json/nearest.h"
#include "harness/judge/counterpart.h"
#include "harness/judge/statistics.h"
#include "harness/result/safe_file.h"
#include "harness/statistics/robust.h"

namespace moegauge {
namespace {

constexpr std::string_view calibration_schema = "moegauge.calibration/1";

struct Seen {
  std::vector<double> logs, standard_errors;
};

CaseCalibration read_case(const JsonCursor& cursor) {
  cursor.only_keys({"id", "between", "within", "processes"});
  return {.between = cursor.at("between").number(0, 10),
          .within = cursor.at("within").number(0, 10),
          .processes = static_cast<std::size_t>(cursor.at("processes").integer(2, 1'000'000))};
}

}  // namespace

Calibration calibrate(const std::vector<Result>& processes) {
  std::map<std::string, std::map<std::string, Seen>> seen;
  for (const Result& process : processes) {
    for (const CaseRecord& record : process.cases) {
      if (record.measured() == nullptr) continue;
      const auto log = log_latency(record.measured()->latency);
      if (!log) continue;
      Seen& one = seen[record.device][record.id()];
      one.logs.push_back(log->value);
      one.standard_errors.push_back(log->standard_error);
    }
  }
  Calibration calibration;
  for (const auto& [device, cases] : seen) {
    for (const auto& [id, one] : cases) {
      if (one.logs.size() < 2) continue;
      calibration[device][id] = {.between = std::sqrt(robust_location(one.logs).variance.value),
                                 .within = median(one.standard_errors),
                                 .processes = one.logs.size()};
    }
  }
  return calibration;
}

void merge_into(Calibration& calibration, const Calibration& newer) {
  for (const auto& [device, cases] : newer) {
    for (const auto& [id, one] : cases) calibration[device][id] = one;
  }
}

Calibration load_calibration(const std::filesystem::path& file) {
  const JsonDocument document = JsonDocument::read(file);
  const JsonCursor root(document);
  root.only_keys({"schema", "devices"});
  if (root.at("schema").string() != calibration_schema) {
    root.at("schema").fail("not a calibration that this version reads",
                           in_quotes(std::string(calibration_schema)));
  }
  Calibration calibration;
  for (const JsonCursor& device : root.at("devices").items()) {
    device.only_keys({"device", "cases"});
    auto& cases = calibration[device.at("device").text()];
    for (const JsonCursor& item : device.at("cases").items()) {
      if (!cases.emplace(item.at("id").text(), read_case(item)).second) {
        item.fail("the case stands twice under this device", "one entry a case");
      }
    }
  }
  return calibration;
}

void write_calibration(const std::filesystem::path& file, const Calibration& calibration) {
  using Json = nlohmann::ordered_json;
  const auto quoted = [](const std::string& text) {
    return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::string text =
      "{\n\"schema\": " + quoted(std::string(calibration_schema)) + ",\n\"devices\": [";
  bool first_device = true;
  for (const auto& [device, cases] : calibration) {
    text += std::string(first_device ? "\n" : ",\n") + "{\"device\": " + quoted(device) +
            ", \"cases\": [";
    first_device = false;
    bool first = true;
    for (const auto& [id, one] : cases) {
      text += std::string(first ? "\n" : ",\n") +
              Json{{"id", id},
                   {"between", one.between},
                   {"within", one.within},
                   {"processes", one.processes}}
                  .dump(-1, ' ', false, Json::error_handler_t::replace);
      first = false;
    }
    text += "\n]}";
  }
  replace_file(file, text + "\n]\n}\n");
}

}  // namespace moegauge
