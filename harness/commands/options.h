// Options that several subcommands have, so that they read alike everywhere.
#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace moegauge {

// --filter, with "*" as its value where it is not given. An empty filter matches nothing; for every
// other option an empty value is bad usage (command_line.cc).
inline constexpr const char* filter_option = "--filter";
void add_filter(CLI::App& app, std::string& glob, const std::string& description);
// --json
void add_json_flag(CLI::App& app, bool& json, const std::string& instead_of = "text");
// --policy; the effect in the words of the command
void add_policy(CLI::App& app, std::string& policy, const std::string& description);
// --markdown
void add_markdown(CLI::App& app, std::string& file, const std::string& what);

// --seed
void add_seed(CLI::App& app, std::uint64_t& seed, const std::string& description);

}  // namespace moegauge
