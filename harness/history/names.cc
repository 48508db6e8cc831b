#include "harness/history/names.h"

#include "reference/base/input_error.h"

namespace moegauge {

CaseNames::CaseNames(const std::vector<HistoryRename>& renames) {
  std::map<std::string, std::string> next;
  for (const HistoryRename& one : renames) next[one.from] = one.to;
  for (const auto& [from, to] : next) {
    std::string last = to;
    for (std::size_t steps = 0; next.contains(last); ++steps) {
      if (last == from || steps > next.size()) {
        throw InputError(from, "its renames go round in a circle", "rename towards the new name");
      }
      last = next[last];
    }
    newest_[from] = last;
  }
}

std::string CaseNames::newest(const std::string& id) const {
  const auto found = newest_.find(id);
  return found == newest_.end() ? id : found->second;
}

}  // namespace moegauge
