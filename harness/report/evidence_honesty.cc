// What an evidence page does not show, and how to make it again.
#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "harness/judge/report_parts.h"
#include "harness/report/evidence_parts.h"

namespace moegauge {
namespace {

std::string counted(std::size_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// By the architecture in a device key: NVIDIA_H200/sm_90/132, AMD_Instinct_MI300X/gfx942/304.
bool has_architecture(const std::set<std::string>& devices, const std::string& begin) {
  return std::ranges::any_of(devices, [&](const std::string& device) {
    return device.find("/" + begin) != std::string::npos;
  });
}

struct Facts {
  std::set<std::string> devices = {}, routings = {}, inputs = {};
  std::size_t ok = 0, tuned = 0, unstable = 0, suspect = 0, extrapolated = 0, unmeasured = 0;
  std::size_t serving = 0, scores = 0, scores_without_error = 0;
};

Facts facts_of(const ReportInput& input) {
  Facts facts;
  for (const ReportFile& file : input.files) {
    for (const CaseRecord& record : file.result.cases) {
      const Measured* measured = record.measured();
      if (measured == nullptr) {
        ++facts.unmeasured;
        continue;
      }
      ++facts.ok;
      facts.devices.insert(record.device);
      facts.routings.insert(record.coordinates.routing);
      facts.inputs.insert(record.coordinates.inputs);
      facts.tuned += record.coordinates.config == "tuned";
      facts.unstable += measured->unstable;
      facts.suspect += measured->suspect;
      facts.extrapolated += measured->extrapolated;
    }
    for (const EndToEndRow& row : file.result.end_to_end) {
      facts.serving += row.op == "serve";
      facts.scores += row.op == "eval";
      facts.scores_without_error += row.op == "eval" && !row.number("stderr");
    }
  }
  return facts;
}

std::string context_of(const Result& result, const std::string& key) {
  for (const auto& [name, value] : result.context)
    if (name == key) return value;
  return "";
}

// As a shell takes it.
std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-./:=,+@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return word;
  std::string text = "'";
  for (const char c : word) c == '\'' ? text += "'\\''" : text += c;
  return text + "'";
}

// One line, no more than a page can bear, and no end of the code block within.
std::string short_command(std::string command) {
  for (char& c : command)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  for (std::size_t at = 0; (at = command.find("```", at)) != std::string::npos;)
    command.replace(at, 3, "'''");
  constexpr std::size_t most = 600;
  if (command.size() <= most) return command;
  return "# " + std::to_string(command.size()) +
         " bytes, too long to show: " + command.substr(0, 60);
}

// As `moegauge ingest` noted them; none where the file is older than that, or not as it writes
// them.
std::vector<std::string> noted_arguments(const Result& result) {
  const auto noted =
      nlohmann::json::parse(context_of(result, "ingest_arguments"), nullptr, /*exceptions=*/false);
  if (!noted.is_array()) return {};
  std::vector<std::string> words;
  for (const nlohmann::json& word : noted) {
    if (!word.is_string()) return {};
    words.push_back(word);
  }
  return words;
}

// What the rows tell of it.
std::vector<std::string> arguments_by_rows(const Result& result) {
  std::vector<std::string> words;
  std::set<std::string> variants;
  for (const EndToEndRow& row : result.end_to_end) {
    if (std::ranges::find(words, row.source.file) == words.end()) words.push_back(row.source.file);
    variants.insert(row.variant());
  }
  if (variants.size() == 1 && !variants.begin()->empty())
    words.insert(words.end(), {"--variant", *variants.begin()});
  const std::string machine = context_of(result, "measured_on");
  if (!machine.empty() && machine != "not stated")
    words.insert(words.end(), {"--machine", machine});
  return words;
}

std::string command_of(const ReportFile& file) {
  const Result& result = file.result;
  std::string command;
  if (!result.end_to_end.empty()) {
    std::vector<std::string> words = noted_arguments(result);
    if (words.empty()) words = arguments_by_rows(result);
    command = "moegauge ingest";
    for (const std::string& word : words) command += " " + quoted(word);
  } else {
    const std::string suite = context_of(result, "suite_file");
    command = "moegauge run " + quoted(suite.empty() ? context_of(result, "suite") : suite);
    if (const std::string seed = context_of(result, "seed"); !seed.empty())
      command += " --seed " + quoted(seed);
  }
  return command + " --out " + quoted(file.name);
}

}  // namespace

std::vector<std::string> commands_to_repeat(const ReportInput& input,
                                            const std::vector<Judgement>& judgements) {
  constexpr std::size_t most_files = 6, most_cases = 5;
  std::vector<std::string> commands;
  for (std::size_t i = 0; i < std::min(input.files.size(), most_files); ++i)
    commands.push_back(short_command(command_of(input.files[i])));
  if (input.files.size() > most_files)
    commands.push_back("# and " + std::to_string(input.files.size() - most_files) + " more files");
  if (input.baseline) {
    commands.push_back(short_command(command_of(*input.baseline)));
    commands.push_back(short_command("moegauge gate " + quoted(input.files.front().name) +
                                     " --baseline " + quoted(input.baseline->name) + " --policy " +
                                     quoted(input.policy.name)));
  }
  std::size_t shown = 0;
  for (const Judgement& judgement : judgements) {
    for (const CaseVerdict* verdict : worst_first(judgement)) {
      if (shown == most_cases || !needs_person(*verdict) || verdict->repro.empty()) continue;
      if (shown++ == 0) commands.push_back("# the worst cases, each alone");
      commands.push_back(short_command(verdict->repro));
    }
  }
  return commands;
}

std::vector<std::string> honest_gaps(const ReportInput& input, const ReportRows& rows) {
  const Facts facts = facts_of(input);
  std::vector<std::string> gaps;
  const auto add = [&gaps](bool applies, const std::string& sentence) {
    if (applies) gaps.push_back(sentence);
  };
  add(!input.baseline, "No baseline: nothing here is a before and after.");
  add(facts.ok == 0, "No kernel was measured.");
  add(facts.ok > 0 && !has_architecture(facts.devices, "gfx"), "No AMD hardware run.");
  add(facts.ok > 0 && !has_architecture(facts.devices, "sm_"), "No NVIDIA hardware run.");
  add(facts.devices.size() > 1, counted(facts.devices.size(), "device") +
                                    " stand in one page: tables of different ones are no "
                                    "before and after.");
  add(facts.ok > 0 && facts.tuned == 0,
      "No tuned config was measured, only defaults or given ones.");
  add(facts.serving == 0, "No serving run.");
  add(facts.scores == 0, "No accuracy of a whole model.");
  add(facts.scores_without_error > 0,
      counted(facts.scores_without_error, "score") + " without a standard error.");
  add(facts.routings.size() == 1 && facts.ok > 0,
      "One routing of tokens to experts only: " + (facts.ok > 0 ? *facts.routings.begin() : "") +
          ".");
  add(facts.inputs.size() == 1 && facts.ok > 0,
      "One kind of inputs only: " + (facts.ok > 0 ? *facts.inputs.begin() : "") + ".");
  add(facts.unstable > 0,
      counted(facts.unstable, "case") + " whose interval is wider than was aimed at (unstable).");
  add(facts.suspect > 0, counted(facts.suspect, "case") + " with a time that cannot be (suspect).");
  add(facts.extrapolated > 0,
      counted(facts.extrapolated, "case") + " far from every entry of the tuned file.");
  add(facts.unmeasured > 0,
      counted(facts.unmeasured, "case") + " without a latency, listed above.");
  const auto apart = static_cast<std::size_t>(std::ranges::count_if(rows.pairs, [](const Row& row) {
    return row.value("kind", "") == "tuned over default" && !row.value("interleaved", false);
  }));
  add(apart > 0, counted(apart, "tuned and default pair") + " not measured in alternation.");
  add(facts.ok > 0 && input.files.size() == 1,
      "One run: how much two runs of one build differ is not in its intervals.");
  const bool unknown = std::ranges::any_of(input.files, [](const ReportFile& file) {
    return context_of(file.result, "measured_on") == "not stated";
  });
  add(unknown, "The machine that served or was evaluated is not stated.");
  return gaps;
}

}  // namespace moegauge
