#include "harness/endtoend/serving_columns.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "harness/endtoend/pasted_text.h"
#include "harness/endtoend/serving_names.h"
#include "harness/json/nearest.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

struct PointColumn {
  const char* head;
  const char* label;
};
// Columns that name the point, wherever they stand. (GPUs are a number of the point, its model the
// row's.)
constexpr std::array point_columns = {PointColumn{"sequence", "input_output"},
                                      PointColumn{"isl-osl", "input_output"},
                                      PointColumn{"isl/osl", "input_output"},
                                      PointColumn{"parallelism", "parallelism"},
                                      PointColumn{"concurrency", "concurrency"},
                                      PointColumn{"max concurrency", "concurrency"},
                                      PointColumn{"request rate", "request_rate"},
                                      PointColumn{"batch", "batch"},
                                      PointColumn{"batch size", "batch"},
                                      PointColumn{"isl", "isl"},
                                      PointColumn{"osl", "osl"},
                                      PointColumn{"tp", "tp"},
                                      PointColumn{"ep", "ep"},
                                      PointColumn{"dp", "dp"},
                                      PointColumn{"pp", "pp"},
                                      PointColumn{"nodes", "nodes"}};

// "Change", "Change (%)": it follows from the other columns.
bool follows(const std::string& head) {
  const std::string plain = lower_case(trimmed(head.substr(0, head.find('('))));
  static constexpr std::array<std::string_view, 6> words = {"change", "speedup", "ratio",
                                                            "delta",  "gain",    "improvement"};
  return std::ranges::find(words, plain) != words.end();
}

// What a column is of: by its title and its head, its head, or, of a variant, by its title.
NumberColumn number_column(const std::vector<std::string>& heads, std::size_t at,
                           const std::string& title, const std::string& where) {
  const std::string& head = heads[at];
  static constexpr const char* expected =
      "a title or a column's head as TTFT (ms), P99 ITL (ms), E2E Latency (ms), Total tok/s/GPU";
  if (speaks_of_a_number(head)) {
    // "of" keeps the words of the one from those of the other.
    auto name = number_named_in(title + " of " + head);
    if (!name) name = number_named_in(head);
    if (name) return {.at = at, .name = *name};
    throw InputError(where, "the column " + in_quotes(head) + " names no number", expected);
  }
  if (const auto name = number_named_in(title)) return {.at = at, .name = *name, .variant = head};
  throw InputError(where,
                   "the table is of " + (title.empty() ? "nothing that is named" : title) +
                       ", which names no number for " + in_quotes(head),
                   expected);
}

}  // namespace

const char* point_label(const std::string& head) {
  const std::string plain = lower_case(head);
  for (const PointColumn& column : point_columns)
    if (plain == column.head) return column.label;
  return nullptr;
}

bool is_gpus(const std::string& head) {
  const std::string plain = lower_case(head);
  return plain == "gpus" || plain == "# gpus" || plain == "gpu count";
}

bool is_model(const std::string& head) { return lower_case(head) == "model"; }

std::vector<NumberColumn> number_columns(const std::vector<std::string>& heads,
                                         const std::string& title, const std::string& where) {
  std::vector<NumberColumn> columns;
  std::map<std::pair<std::string, std::string>, std::size_t> alike;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const std::string& head = heads[i];
    if (point_label(head) != nullptr || is_gpus(head) || is_model(head) || follows(head)) continue;
    columns.push_back(number_column(heads, i, title, where));
    ++alike[{columns.back().name, columns.back().variant}];
  }
  std::set<std::pair<std::string, std::string>> told_apart;
  for (NumberColumn& column : columns) {
    // "Old TTFT (ms)" and "New TTFT (ms)"
    if (alike[{column.name, column.variant}] > 1) column.variant = heads[column.at];
    if (!told_apart.emplace(column.name, column.variant).second)
      throw InputError(where, "two columns are called " + in_quotes(heads[column.at]),
                       "a head for each");
  }
  return columns;
}

}  // namespace moegauge
