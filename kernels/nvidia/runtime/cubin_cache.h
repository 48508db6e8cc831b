// Cubins on disk by content, shared by any number of processes, with a map above them in this one.
//
// An entry's name is a hash of its key (main source, includes, options, architecture, compiler
// version), and the entry holds the whole key, so that a collision is a miss and never another
// kernel. Entries are built under a temporary name and renamed: a reader sees a whole one or none.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "kernels/nvidia/runtime/compiler.h"

namespace moegauge::cuda {

class CubinCache {
 public:
  // The folder is made when first needed. Where it cannot be written, compiling still works and
  // nothing is kept.
  explicit CubinCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  struct Entry {
    std::shared_ptr<const Cubin> cubin;
    std::string hash;       // 16 hex digits of the key
    bool compiled = false;  // false: it came from the map or the disk
  };
  Expected<Entry, CompileFailure> get(const CompileRequest& request);

  // MOEGAUGE_CACHE_DIR, else XDG_CACHE_HOME/moegauge, else HOME/.cache/moegauge, else a folder of
  // this user under the system's temporary one.
  static std::filesystem::path default_folder();

 private:
  std::filesystem::path folder_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Cubin>> resident_;  // by whole key
};

}  // namespace moegauge::cuda
