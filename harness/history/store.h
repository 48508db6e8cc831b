// The history of results: a SQLite file of summaries. Each change is one transaction: a process
// that is killed leaves what was reported done, and nothing of what was not.
//
// The rollback journal, not the write-ahead log: one file that may be copied, kept as a build's
// artefact, or read in a folder that is read-only; on a network file system too, where the log's
// shared memory is not. Writers wait for each other (an addition takes milliseconds), readers see
// whole transactions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/history/summary.h"

namespace moegauge {

// A case on a device. After a rename a case has several.
struct HistorySeries {
  std::int64_t id = 0;
  std::string case_id = {}, device = {};
  std::int64_t points = 0;
};

// A run that a case's later ones are held against for good; never changed, only followed by
// another.
struct HistoryAnchor {
  std::int64_t series = 0;
  std::int64_t run = 0, time = 0;  // of its point
  std::int64_t set_at = 0;         // seconds since 1970 in UTC
  std::string who = {}, reason = {};
};
inline const std::string first_anchor_reason = "first ok run";

struct HistoryRename {
  std::string from = {}, to = {};
  std::int64_t set_at = 0;
  std::string who = {};
};

// Functions throw InputError: no history, a corrupt one, one of a newer version, a full disk,
// another writer that does not come to an end.
class HistoryStore {
 public:
  virtual ~HistoryStore() = default;

  struct Added {
    std::int64_t run = 0;
    bool already = false;  // the same measurements were there
  };
  // A case that serves and has no anchor yet, under any of its names, gets this run as one. Of a
  // run that is there already only what is held back is written.
  virtual Added add(const RunSummary& summary, const std::string& who, std::int64_t now) = 0;
  virtual std::optional<std::int64_t> run_of(const std::string& content) = 0;

  virtual std::vector<HistoryRun> runs() = 0;  // in order of time
  virtual std::vector<HistorySeries> series() = 0;
  // In order of time; the newest `most` of them.
  virtual std::vector<HistoryPoint> points(const HistorySeries& series, std::size_t most) = 0;
  // From `from` on, the oldest `most` of them.
  virtual std::vector<HistoryPoint> points_from(const HistorySeries& series, std::int64_t from,
                                                std::size_t most) = 0;
  virtual std::string variant(std::int64_t id) = 0;

  virtual std::vector<HistoryAnchor> anchors() = 0;  // the oldest first
  virtual void set_anchors(const std::vector<HistoryAnchor>& anchors) = 0;

  virtual std::vector<HistoryRename> renames() = 0;
  // Follows chains; throws InputError for a circle, or where both names stand in one run.
  virtual void rename(const std::vector<HistoryRename>& renames) = 0;
};

// Whether this build can read and write histories at all.
bool history_is_built();
enum class HistoryAccess : std::uint8_t { existing, create };
// Requires history_is_built().
std::unique_ptr<HistoryStore> open_history(const std::filesystem::path& file, HistoryAccess access);

}  // namespace moegauge
