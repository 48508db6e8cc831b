// Aligned columns for a terminal.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace moegauge {

enum class Align { left, right };

class TextTable {
 public:
  explicit TextTable(std::vector<Align> columns) : columns_(std::move(columns)) {}
  // As many cells as there are columns.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  // One line per row, two spaces between columns, none at the end of a line.
  std::string str() const;

 private:
  std::vector<Align> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace moegauge
