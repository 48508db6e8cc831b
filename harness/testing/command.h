// Runs a command line of ours as a user would, for tests that look at exit codes and files.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace moegauge {

struct Finished {
  int code = -1;  // exit code; 128 + signal if it was killed
  std::string out, err;
};

// A process with stdout and stderr in files under `folder`.
class Running {
 public:
  Running(const std::filesystem::path& program, const std::vector<std::string>& arguments,
          const std::filesystem::path& folder);
  pid_t pid() const { return pid_; }
  void signal(int number) const;
  std::string err() const;  // so far
  Finished wait();

 private:
  std::filesystem::path folder_;
  pid_t pid_ = -1;
};

Finished run_command(const std::filesystem::path& program,
                     const std::vector<std::string>& arguments,
                     const std::filesystem::path& folder);

// A fresh folder, gone with the object. Holds a tiny model (config.json: 8 experts, top 2, K 256,
// N 128) for suites to name.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  // Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& text) const;
  // A suite of the tiny model in bf16; `fields` are further members of its one case, as JSON. One
  // token unless they say otherwise.
  std::string suite(const std::string& fields) const;

 private:
  std::filesystem::path path_;
};

std::string read_file(const std::filesystem::path& file);

}  // namespace moegauge
