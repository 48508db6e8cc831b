#include "harness/testing/command.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace moegauge {
namespace fs = std::filesystem;

Running::Running(const fs::path& program, const std::vector<std::string>& arguments,
                 const fs::path& folder)
    : folder_(folder) {
  std::vector<std::string> words = {program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string out = folder / "stdout", err = folder / "stderr";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  const int failed = posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::runtime_error("cannot start " + program.string());
}

void Running::signal(int number) const { ::kill(pid_, number); }

std::string Running::err() const { return read_file(folder_ / "stderr"); }

Finished Running::wait() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
          read_file(folder_ / "stdout"), read_file(folder_ / "stderr")};
}

Finished run_command(const fs::path& program, const std::vector<std::string>& arguments,
                     const fs::path& folder) {
  return Running(program, arguments, folder).wait();
}

TestFolder::TestFolder() {
  std::string pattern = (fs::temp_directory_path() / "moegauge-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make " + pattern);
  path_ = pattern;
  write("config.json", R"({"model_type": "mixtral", "num_local_experts": 8,
    "num_experts_per_tok": 2, "hidden_size": 256, "intermediate_size": 128, "hidden_act": "silu"})");
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TestFolder::write(const std::string& name, const std::string& text) const {
  std::ofstream(path_ / name) << text;
  return path_ / name;
}

std::string TestFolder::suite(const std::string& fields) const {
  return write("suite.json", R"({"schema": "moegauge.suite/1", "name": "test",
    "defaults": {"tokens": 1}, "cases": [
    {"model": "config.json", "scheme": "bf16", )" +
                                 fields + "}]}");
}

std::string read_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

}  // namespace moegauge
