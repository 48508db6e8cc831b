// A build that found no SQLite.
#include <stdexcept>

#include "harness/history/store.h"

namespace moegauge {

bool history_is_built() { return false; }

std::unique_ptr<HistoryStore> open_history(const std::filesystem::path&, HistoryAccess) {
  throw std::logic_error("a history was opened in a build without SQLite");
}

}  // namespace moegauge
