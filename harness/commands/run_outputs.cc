#include "harness/commands/run_outputs.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <system_error>

#include "harness/commands/preflight.h"
#include "harness/worker/runner.h"
#include "reference/base/input_error.h"

namespace moegauge {

namespace fs = std::filesystem;

std::vector<NamedFile> with_weights(std::vector<NamedFile> read, const Suite& suite,
                                    const fs::path& root) {
  std::set<fs::path> models;
  for (const CaseCoordinates& c : suite.cases) {
    if (c.model != replay_model_name) models.insert(model_file(c.model, root));
  }
  for (const fs::path& model : models) {
    std::ranges::copy(weights_beside(model), std::back_inserter(read));
  }
  return read;
}

void require_writable_place(const fs::path& out, std::span<const NamedFile> taken) {
  if (out.empty()) return;
  // What lies beside the result is written over, or set aside, just the same.
  for (const char* suffix : {"", ".partial", ".journal", ".journal.old"}) {
    require_own_place("--out", out.string() + suffix, taken);
  }
}

void make_dump_folder(const fs::path& folder, std::span<const NamedFile> taken) {
  if (folder.empty()) return;
  std::error_code error;
  for (const auto& [role, file] : taken) {
    // A checkpoint of one file would be none any more beside another one.
    if (file.extension() != ".safetensors") continue;
    if (!fs::equivalent(fs::absolute(file).parent_path(), folder, error)) continue;
    throw InputError("--dump " + folder.string(), "it holds " + file.string() + ", " + role,
                     "name another folder");
  }
  fs::create_directories(folder, error);
  if (!fs::is_directory(folder, error)) {
    throw InputError("--dump " + folder.string(), "no folder can be made there", "name another");
  }
}

void remove_old_dumps(const fs::path& folder, const std::vector<CaseCoordinates>& cases,
                      const std::vector<std::optional<CaseRecord>>& done) {
  if (folder.empty()) return;
  std::error_code ignored;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!done[i]) fs::remove(dump_file(folder, cases[i]), ignored);
  }
}

}  // namespace moegauge
