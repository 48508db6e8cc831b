// The whole command line inside one process, with backends of fakes, for tests of what it says and
// returns. Nothing is measured.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/commands/command.h"
#include "harness/judge/fake_result.h"
#include "harness/result/result_io.h"
#include "kernels/backend.h"

namespace moegauge {

// Serves or refuses everything, or is not there; knows one config key.
class FakeBackend final : public Backend {
 public:
  FakeBackend(std::string name, bool present, std::optional<std::string> refusal)
      : name_(std::move(name)), present_(present), refusal_(std::move(refusal)) {}
  std::string_view name() const override { return name_; }
  Availability availability() const override {
    if (present_) return {.present = true, .detail = "fake silicon"};
    return {.present = false, .detail = "no driver", .remedy = "install the driver"};
  }
  Device device() const override { return {.name = "Fake", .arch = "f1", .units = 2}; }
  std::optional<Refusal> refuses(const Problem&) const override {
    if (!refusal_) return std::nullopt;
    return Refusal{RefusalReason::shape, *refusal_};
  }
  Config default_config(const Problem&) const override { return {}; }
  std::optional<Refusal> refuses_config(const Problem&, const Config& config) const override {
    for (const auto& [key, value] : config.values) {
      if (key != "BLOCK_SIZE_M") {
        return Refusal{RefusalReason::config_unknown_key, "unknown key " + key + "; BLOCK_SIZE_M"};
      }
      if (value > 64) return Refusal{RefusalReason::config_value, "at most 64"};
    }
    return std::nullopt;
  }
  std::string_view config_folder() const override { return ""; }
  Expected<std::unique_ptr<LoadedLayer>, Fault> load(const Problem&, const ExpertSource&,
                                                     int) const override {
    return Unexpected{Fault{FaultKind::error, "a fake loads nothing"}};
  }
  Expected<Ceilings, Fault> measure_ceilings(const Problem&) const override {
    return Ceilings{.read_bytes_per_s = 10e9, .dot_flops_per_s = 50e9};
  }

 private:
  std::string name_;
  bool present_;
  std::optional<std::string> refusal_;
};

inline const FakeBackend serving("serving", true, std::nullopt);
inline const FakeBackend also_serving("also-serving", true, std::nullopt);
inline const FakeBackend refusing("refusing", true,
                                  "N = 768 is no multiple of 512; 512 and 1024 are served");
inline const FakeBackend absent("absent", false, std::nullopt);

class CommandLine : public testing::Test {
 protected:
  CommandLine() {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    model_result_ = fake_result();
    for (CaseRecord& record : model_result_.cases) record.coordinates.model = "qwen3-30b-a3b";
    write("r.json", model_result_);
  }
  ~CommandLine() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const Result& result) { write_result(path(name), result); }

  int run(std::vector<std::string> words) {
    words.insert(words.begin(), "moegauge");
    std::vector<const char*> argv;
    argv.reserve(words.size());
    for (const std::string& word : words) argv.push_back(word.c_str());
    std::ostringstream out, err;
    const int code =
        run_command_line(static_cast<int>(argv.size()), argv.data(), {out, err, backends_});
    out_ = out.str();
    err_ = err.str();
    return code;
  }
  int gate(const std::string& result, const std::string& baseline,
           const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"gate", path(result), "--baseline", path(baseline)};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }

  std::filesystem::path folder_;
  Result model_result_;
  // A file in the test's folder; its path.
  std::string write_text(const std::string& name, const std::string& text) {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

  std::vector<const Backend*> backends_ = {&serving};
  std::string out_, err_;
};

}  // namespace moegauge
