#include "harness/export/end_to_end_numbers.h"

#include <map>

#include "harness/endtoend/points.h"

namespace moegauge {

std::vector<ExportedNumber> exported_numbers(const Result& result) {
  std::map<std::string, std::size_t> of_point;
  for (const EndToEndRow& row : result.end_to_end) ++of_point[row.point()];
  std::vector<ExportedNumber> numbers;
  for (const EndToEndRow& row : result.end_to_end) {
    std::string id = row.point();
    if (of_point[id] > 1 && !row.variant().empty()) id += "/variant=" + row.variant();
    for (const auto& [name, value] : row.numbers) {
      ExportedNumber number{.id = id, .name = name, .value = value, .row = &row};
      if (row.op == "eval" && name == "value") {
        number.unit = "score";
        number.better =
            row.lower_is_better ? GoodDirection::lower_is_better : GoodDirection::higher_is_better;
        number.standard_error = row.number("stderr");
      } else if (row.op == "serve") {
        number.unit = unit_of(name);
        number.better = direction_of(name);
      }
      numbers.push_back(std::move(number));
    }
  }
  return numbers;
}

std::string left_out(std::size_t count, const std::string& why) {
  if (count == 0) return "";
  return "leaves out " + std::to_string(count) + (count == 1 ? " number" : " numbers") +
         " of serving and accuracy: " + why;
}

}  // namespace moegauge
