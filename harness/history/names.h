// What cases were and are called.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/history/store.h"

namespace moegauge {

class CaseNames {
 public:
  // Of several renames of one name the last counts. Throws InputError for a circle.
  explicit CaseNames(const std::vector<HistoryRename>& renames);
  // The name that a case goes by now.
  std::string newest(const std::string& id) const;

 private:
  std::map<std::string, std::string> newest_;
};

}  // namespace moegauge
