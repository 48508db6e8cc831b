#include "harness/commands/history_options.h"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <ostream>

namespace moegauge {

std::unique_ptr<HistoryStore> open_history_or_say(const std::string& file, HistoryAccess access,
                                                  const Environment& environment) {
  if (history_is_built()) return open_history(file, access);
  environment.err << "moegauge: this build has no SQLite and so no history; install libsqlite3-dev "
                     "(./scripts/setup does) and build again\n";
  return nullptr;
}

std::string who_is_this() {
  const passwd* user = ::getpwuid(::getuid());
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::string name = user != nullptr ? user->pw_name : std::to_string(::getuid());
  return name + "@" + host.data();
}

std::int64_t seconds_now() { return std::time(nullptr); }

}  // namespace moegauge
