#include "harness/commands/selection.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "harness/json/nearest.h"
#include "harness/suite/select.h"
#include "harness/worker/schedule.h"
#include "reference/base/input_error.h"
#include "reference/inputs.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

// Every case once per backend instead of the suite's own backends, at its first place.
std::vector<CaseCoordinates> override_backends(const std::vector<CaseCoordinates>& cases,
                                               const std::vector<std::string>& backends) {
  std::vector<CaseCoordinates> result;
  std::vector<std::string> seen;
  for (CaseCoordinates c : cases) {
    c.backend.clear();
    const std::string id = case_id(c);
    if (std::ranges::count(seen, id) > 0) continue;
    seen.push_back(id);
    for (const std::string& backend : backends) {
      c.backend = backend;
      result.push_back(c);
    }
  }
  return result;
}

std::pair<std::size_t, std::size_t> parse_shard(const std::string& text) {
  std::size_t index = 0, count = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, index);
  const bool slash = first.ec == std::errc() && first.ptr != end && *first.ptr == '/';
  const auto second = std::from_chars(slash ? first.ptr + 1 : end, end, count);
  if (!slash || second.ec != std::errc() || second.ptr != end || index < 1 || index > count) {
    throw InputError("--shard", in_quotes(text) + " is no shard", "I/N with 1 <= I <= N, e.g. 2/4");
  }
  return {index, count};
}

std::vector<CaseCoordinates> only_case(const std::vector<CaseCoordinates>& cases,
                                       const std::string& id, const std::string& option) {
  std::vector<std::string> known;
  for (const CaseCoordinates& c : cases) {
    known.push_back(case_id(c));
    if (known.back() == id) return {c};
  }
  const auto nearest = similar_names(id, known, 1);
  throw InputError(option, "no case of the suite has the id " + in_quotes(id),
                   nearest.empty() ? "ids stand in result files, e.g. " + known.front()
                                   : "the nearest is " + nearest.front());
}

}  // namespace

void require_backend(const std::string& name, const std::string& option,
                     std::span<const Backend* const> backends) {
  std::vector<std::string> known = {"auto"};
  for (const Backend* backend : backends) known.emplace_back(backend->name());
  if (std::ranges::count(known, name) > 0) return;
  throw InputError(option, "no backend is called " + in_quotes(name), suggestion(name, known));
}

std::string backend_of_device(const std::string& device, std::span<const Backend* const> backends) {
  const std::size_t colon = device.find(':');
  std::string name = device.substr(0, colon);
  require_backend(name, "--device", backends);
  if (colon != std::string::npos && device.substr(colon + 1) != "0") {
    throw InputError("--device", in_quotes(device) + " is not the first device",
                     "this version measures on device 0 of a backend: " + name + ":0");
  }
  return name;
}

void require_scheme(const std::string& name) {
  if (make_scheme(name) != nullptr) return;
  const UnknownName unknown = unknown_scheme(name);
  throw InputError("--scheme", unknown.wrong, unknown.right);
}

void require_routing(const std::string& text) {
  const auto law = routing_law_named(text);
  if (!law) throw InputError("--routing", law.error().wrong, "write " + law.error().right);
  std::error_code ignored;
  if (*law || fs::exists(text, ignored)) return;
  const UnknownName unknown = unknown_routing(text);
  throw InputError("--routing", unknown.wrong, unknown.right);
}

std::vector<CaseCoordinates> select_cases(const Suite& suite, const SelectionOptions& options,
                                          std::span<const Backend* const> backends) {
  std::vector<CaseCoordinates> cases = suite.cases;
  std::vector<std::string> wanted = options.backends;
  if (!options.device.empty()) wanted.push_back(backend_of_device(options.device, backends));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    require_backend(wanted[i], "--backend", backends);
    if (std::count(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(i), wanted[i]) >
        0) {
      throw InputError("--backend", in_quotes(wanted[i]) + " is named twice", "name each once");
    }
  }
  for (const CaseCoordinates& c : cases) {
    const auto place = suite.backend_places.find(c.backend);  // none of a suite made by hand
    require_backend(c.backend, place == suite.backend_places.end() ? suite.name : place->second,
                    backends);
  }
  if (!wanted.empty()) cases = override_backends(cases, wanted);
  if (!options.tokens.empty()) {
    cases = override_tokens(cases, parse_token_list(options.tokens, "--tokens"));
  }
  cases = filter_cases(cases, options.filter);
  if (!options.iterate.empty()) cases = only_case(cases, options.iterate, "--iterate");
  if (!options.profile.empty()) cases = only_case(cases, options.profile, "--profile");
  if (!options.shard.empty()) {
    const auto [index, count] = parse_shard(options.shard);
    std::vector<CaseCoordinates> kept;
    for (const std::size_t i : shard(cases, index, count)) kept.push_back(cases[i]);
    cases = std::move(kept);
  }
  return cases;
}

fs::path find_suite(const std::string& name, const fs::path& root) {
  for (const fs::path& candidate :
       {fs::path(name), root / name, root / "suites" / name, root / "suites" / (name + ".json")}) {
    std::error_code ignored;
    if (fs::is_regular_file(candidate, ignored)) return candidate;
  }
  std::vector<std::string> known;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root / "suites", ignored)) {
    if (entry.path().extension() == ".json")
      known.push_back("suites/" + entry.path().filename().string());
  }
  std::ranges::sort(known);
  const fs::path asked = fs::path(name).stem();
  throw InputError(name, "there is no such suite",
                   suggestion("suites/" + asked.string() + ".json", known));
}

}  // namespace moegauge
