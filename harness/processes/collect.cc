#include "harness/processes/collect.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <system_error>

#include "harness/json/nearest.h"
#include "harness/result/result_io.h"
#include "harness/result/safe_file.h"
#include "harness/worker/process.h"
#include "reference/base/fnv1a.h"
#include "reference/base/input_error.h"
#include "reference/base/text_file.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

// What `run` ends with, harness/commands/command.h.
constexpr int bad_input = 2;
constexpr int last_with_a_result = 4;

std::string last_line(const fs::path& log) {
  std::error_code ignored;
  if (!fs::exists(log, ignored)) return "";
  std::istringstream text(read_text_file(log));
  std::string last;
  for (std::string line; std::getline(text, line);) {
    if (!line.empty()) last = line;
  }
  const std::string own = "moegauge: ";
  return last.starts_with(own) ? last.substr(own.size()) : last;
}

// A file that was cut is measured again: nobody can say what it lacks.
std::optional<Result> result_in(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return std::nullopt;
  LoadedResult loaded = load_result(file);
  if (!loaded.truncated) return std::move(loaded.result);
  fs::remove(file, ignored);
  return std::nullopt;
}

void remove_leavings(const fs::path& file) {
  std::error_code ignored;
  for (const char* suffix : {".journal", ".journal.old", ".partial"}) {
    fs::remove(file.string() + suffix, ignored);
  }
}

// Empty where there is a result to read. Throws InputError for bad input.
std::string why_no_result(const MeasuringProcess& process, const ChildEnd& end,
                          const fs::path& file, const fs::path& log) {
  const std::string program = process.program.string();
  if (!end.cannot_start.empty()) {
    throw InputError(process.who, program + " cannot be started: " + end.cannot_start,
                     "give a folder with a moegauge that runs here");
  }
  std::error_code ignored;
  const std::string said = last_line(log);
  const std::string quoted = said.empty() ? "" : " (" + said + ")";
  if (!end.by_signal && end.code == bad_input) {
    throw InputError(process.who, program + " refused its input" + quoted, "see " + log.string());
  }
  const bool written = fs::exists(file, ignored);
  if (!end.by_signal && end.code <= last_with_a_result && written) return "";
  const Ending ending{.by_signal = end.by_signal, .code = end.code};
  return process.who + ": " + program + ": " + describe(ending) +
         (written ? ", after it wrote its result, which is not used" : ", without a result") +
         quoted + "; see " + log.string();
}

// Two builds in one half of a comparison are no comparison.
void require_same_build(const MeasuringProcess& process, const std::string& facts) {
  if (build_facts(process.program) == facts) return;
  throw InputError(process.who, process.program.string() + " was built anew while it was measured",
                   "leave it alone, or measure a copy (cmake --install); what is measured of the "
                   "former build is no use to the new one");
}

}  // namespace

Collected collect(const fs::path& folder, const std::vector<MeasuringProcess>& processes,
                  double spacing, const CollectHooks& hooks) {
  Collected collected;
  std::map<fs::path, std::string> builds;
  for (const MeasuringProcess& p : processes) builds.try_emplace(p.program, build_facts(p.program));
  bool measured_before = false;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const MeasuringProcess& process = processes[i];
    const std::string& build = builds.at(process.program);
    const fs::path file = folder / (process.name + ".json"), log = folder / (process.name + ".log");
    std::optional<Result> result = result_in(file);
    const bool already = result.has_value();
    if (!already) {
      if (measured_before) wait_for(spacing, hooks.interruption);
      collected.interrupted_by = hooks.interruption.signal();
      if (collected.interrupted_by != 0) return collected;
      require_same_build(process, build);
      hooks.started(i);
      std::vector<std::string> arguments = process.arguments;
      arguments.insert(arguments.end(), {"--out", file.string(), "--resume"});
      const ChildEnd end = run_child(process.program, arguments, log, hooks.interruption);
      collected.interrupted_by = hooks.interruption.signal();
      std::error_code ignored;
      if (collected.interrupted_by != 0 && !fs::exists(file, ignored)) return collected;
      require_same_build(process, build);
      collected.failed = why_no_result(process, end, file, log);
      if (!collected.failed.empty()) {
        fs::remove(file, ignored);  // or the next attempt would take it for one that ended well
        return collected;
      }
      result = result_in(file);
      if (!result) {
        collected.failed = file.string() + " was cut while it was written";
        return collected;
      }
      remove_leavings(file);
      measured_before = true;
    }
    collected.results.push_back(std::move(*result));
    hooks.finished(i, already);
    if (collected.interrupted_by != 0 || !hooks.worth_going_on(collected.results)) return collected;
  }
  return collected;
}

void claim_folder(const fs::path& folder, const std::string& facts) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!fs::is_directory(folder, error)) {
    throw InputError(folder.string(), "no folder can be made there", "name another");
  }
  const fs::path file = folder / "measured.txt";
  if (!fs::exists(file, error)) {
    const bool empty = fs::directory_iterator(folder, error) == fs::directory_iterator();
    if (!empty) {
      throw InputError(folder.string(), "it holds files that are not of this command",
                       "name an empty folder or a new one");
    }
    replace_file(file, facts);
    return;
  }
  std::istringstream then(read_text_file(file)), now(facts);
  for (;;) {
    std::string was, is;
    const bool more_then = static_cast<bool>(std::getline(then, was));
    const bool more_now = static_cast<bool>(std::getline(now, is));
    if (!more_then && !more_now) return;
    if (was == is && more_then == more_now) continue;
    throw InputError(
        folder.string(),
        "its results are of something else: " + in_quotes(was) + ", now " + in_quotes(is),
        "name another folder, or empty it");
  }
}

std::string build_facts(const fs::path& program) {
  std::error_code ignored;
  const fs::path whole = fs::canonical(program, ignored);
  std::vector<fs::path> files = {whole};
  for (const auto& entry : fs::directory_iterator(whole.parent_path(), ignored)) {
    if (entry.path().extension() == ".so") files.push_back(entry.path());
  }
  std::sort(files.begin() + 1, files.end());
  std::string identities;
  for (const fs::path& file : files) {
    const auto written = fs::last_write_time(file, ignored).time_since_epoch().count();
    identities += file.filename().string() + " " + std::to_string(fs::file_size(file, ignored)) +
                  " " + std::to_string(written) + "\n";
  }
  return whole.string() + " " + fnv1a_hex(identities) + "\n";
}

}  // namespace moegauge
