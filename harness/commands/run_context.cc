#include "harness/commands/run_context.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <system_error>

#include "harness/commands/output_of.h"
#include "harness/history/summary.h"
#include "harness/history/utc.h"
#include "harness/result/shards.h"
#include "reference/base/fnv1a.h"
#include "reference/base/text_file.h"

namespace moegauge {
namespace {

std::string first_line_of(const std::vector<std::string>& words) {
  const std::string text = output_of(words).value_or("");
  return text.substr(0, text.find('\n'));
}

// Of the bytes of this program and of the libraries beside it: shards run on other machines, where
// the same build has other times.
std::string build_by_content() {
  std::error_code ignored;
  const std::filesystem::path self = std::filesystem::canonical("/proc/self/exe", ignored);
  std::vector<std::filesystem::path> files = {self};
  for (const auto& entry : std::filesystem::directory_iterator(self.parent_path(), ignored)) {
    if (entry.path().extension() == ".so") files.push_back(entry.path());
  }
  std::sort(files.begin() + 1, files.end());
  std::string hashes;
  for (const auto& file : files) {
    hashes += file.filename().string() + " " + fnv1a_hex(read_text_file(file)) + "\n";
  }
  return fnv1a_hex(hashes);
}

std::string smi_facts(const std::string& device_name) {
  std::vector<std::string> words = {
      "nvidia-smi", "--query-gpu=name,driver_version,power.limit,mig.mode.current,ecc.mode.current",
      "--format=csv,noheader,nounits"};
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    const std::string first = std::string(visible).substr(0, std::string(visible).find(','));
    if (!first.empty()) words.push_back("--id=" + first);
  }
  return facts_in_smi_line(first_line_of(words), device_name);
}

}  // namespace

void add_commit(const std::filesystem::path& root, Context& context) {
  std::error_code ignored;
  if (!std::filesystem::exists(root / ".git", ignored)) return;
  const std::vector<std::string> git = {"git", "--no-optional-locks", "-C", root.string()};
  const auto of = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = git;
    words.insert(words.end(), more.begin(), more.end());
    return first_line_of(words);
  };
  const std::string commit = of({"describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"});
  const std::string time = of({"show", "-s", "--format=%cI", "HEAD"});
  const auto seconds = utc_seconds(time);
  if (commit.empty() || !seconds) return;
  context.emplace_back("commit", commit);
  context.emplace_back("commit_time", utc_text(*seconds));
}

std::string facts_in_smi_line(std::string_view line, const std::string& device_name) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == ',') {
      fields.emplace_back();
    } else if (c != ' ' || !fields.back().empty()) {
      fields.back() += c;
    }
  }
  if (fields.size() != 5) return "";
  std::ranges::replace(fields[0], ' ', '_');
  if (fields[0] != device_name) return "";
  return "driver " + fields[1] + ", power cap " + fields[2] + " W, MIG " + fields[3] + ", ECC " +
         fields[4];
}

void add_shard(const std::string& shard, std::span<const CaseCoordinates> selection,
               std::optional<double> seconds_per_case, Context& context) {
  const std::string effort =
      seconds_per_case ? std::to_string(*seconds_per_case) + " s a case" : "";
  context.emplace_back(shard_key, shard);
  context.emplace_back(selection_key, selection_text(selection, effort));
  context.emplace_back(build_key, build_by_content());
}

void add_device_facts(const Device& device, Context& context) {
  std::string facts;
  const std::int64_t gib = (device.memory_bytes + (std::int64_t{1} << 29)) >> 30;
  if (gib > 0) facts = "memory " + std::to_string(gib) + " GiB";
  if (const std::string more = smi_facts(device.name); !more.empty()) {
    facts += (facts.empty() ? "" : ", ") + more;
  }
  if (!facts.empty()) context.emplace_back(device_context_prefix + device.name, facts);
}

}  // namespace moegauge
