// The serving and accuracy rows of one side of a comparison, by what they are of.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/endtoend/verdicts.h"
#include "harness/result/record.h"

namespace moegauge {

struct EndToEndPoint {
  std::string id = {};                        // EndToEndRow::point
  std::vector<const EndToEndRow*> rows = {};  // one per file; of the results, which must live on
  std::vector<std::string> measured_on = {};  // of each row's file; "" where it does not say
  std::vector<std::string> variants = {};     // more than one where a file holds several

  const EndToEndRow& row() const { return *rows.front(); }
  // Of several runs the median.
  std::optional<double> number(const std::string& name) const;
};

struct EndToEndSide {
  std::vector<EndToEndPoint> points = {};  // in the order of the files
  std::map<std::string, std::size_t> at = {};

  const EndToEndPoint* find(const std::string& id) const;
};
EndToEndSide side_of(std::span<const Result> results);

// Whether less of a number of serving is better; none where it is neither better nor worse.
std::optional<GoodDirection> direction_of(const std::string& number);
std::string unit_of(const std::string& number);

// Numbers that cannot be what they say: a time far above that of more work, or a throughput far
// below that of fewer requests at once. By "POINT/NUMBER", the reason.
std::map<std::string, std::string> suspects_of(const EndToEndSide& side);

}  // namespace moegauge
