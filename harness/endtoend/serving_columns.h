// What the columns of a pasted table of serving are, by their heads and the table's title.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace moegauge {

// The label that a column gives its point; null for one that gives none.
const char* point_label(const std::string& head);
bool is_gpus(const std::string& head);
bool is_model(const std::string& head);

// A column of a number that was measured.
struct NumberColumn {
  std::size_t at = 0;
  std::string name = {};
  std::string variant = {};  // what the column is of, where its head names no number
};

// The columns that are none of the above. Throws InputError at `where`, the head's place, for one
// of which neither head nor title says what it holds.
std::vector<NumberColumn> number_columns(const std::vector<std::string>& heads,
                                         const std::string& title, const std::string& where);

}  // namespace moegauge
