// Writes a result with a case of every kind, for tests of the file with programs by others.
// Arguments: the file, a factor on all latencies, and where it matters how many samples a case has.
#include <cstdlib>
#include <exception>
#include <iostream>
#include <limits>

#include "harness/result/record_testing.h"
#include "harness/result/result_io.h"

namespace moegauge {
namespace {

CaseRecord scaled(std::int64_t tokens, double factor, int samples) {
  CaseRecord record = test_measured(tokens);
  auto& measured = std::get<Measured>(record.outcome);
  auto& latency = measured.latency;
  measured.rounds = samples;  // a sample each: enough for the gate too
  latency.samples.clear();
  // Enough for the rank test of compare.py (9 or more), and no two alike.
  for (int i = 0; i < samples; ++i) latency.samples.push_back(120 + 2.75 / samples * i);
  for (double* value : {&latency.median, &latency.ci_low, &latency.ci_high, &latency.p10,
                        &latency.p90, &latency.min, &latency.max, &latency.mean}) {
    *value *= factor;
  }
  for (double& sample : latency.samples) sample *= factor;
  return record;
}

Result sample(double factor, int samples) {
  Result result;
  result.context = {{"suite", "quick"}, {"seed", "1"}, {"note", "\"\\\n\x01\xFF\xE2\x80\xA8"}};
  result.cases = {scaled(1, factor, samples), scaled(16, factor, samples)};
  for (const auto status :
       {Status::unsupported, Status::refused_config, Status::crashed, Status::timeout,
        Status::out_of_memory, Status::infrastructure, Status::error, Status::skipped}) {
    result.cases.push_back(
        test_unmeasured(status, "because", 100 + static_cast<std::int64_t>(status)));
  }
  auto& unsupported = std::get<Unmeasured>(result.cases[2].outcome);
  unsupported.absent_backends = {"cuda"};
  CaseRecord inaccurate = test_unmeasured(Status::inaccurate, "zeros", 4);
  CheckResult check = test_check();
  check.error.total.relative_l2 = std::numeric_limits<double>::infinity();
  check.error.total.cosine = std::numeric_limits<double>::quiet_NaN();
  std::get<Unmeasured>(inaccurate.outcome).check = check;
  inaccurate.coordinates.config = R"({"BLOCK_SIZE_M":16})";
  result.cases.push_back(inaccurate);
  CaseRecord hostile = scaled(64, factor, samples);
  hostile.coordinates.model = "a \"b\"\\\n\x7f/\xFF\xE2\x80\xA8.json";
  result.cases.push_back(hostile);
  Comparison comparison;
  comparison.point = point_id(test_coordinates());
  comparison.a = result.cases[0].id();
  comparison.b = result.cases[1].id();
  comparison.pairs = 9;
  result.comparisons = {comparison};
  const std::string digest(64, 'a');
  result.end_to_end = {
      {.op = "serve",
       .model = "org/model",
       .labels = {{"input_output", "512-512"}, {"concurrency", "8"}},
       .numbers = {{"ttft_ms.mean", 982.67}},
       .source = {.file = "paste.txt", .lines = {3, 9}, .sha256 = digest, .tool = "a table"},
       .unknown = {{"note", "kept"}}},
      {.op = "eval",
       .labels = {{"task", "t"}},
       .numbers = {{"value", -0.5}, {"stderr", 0.25}, {"samples", 3}},
       .lower_is_better = true,
       .questions = Questions{.right = {0, 2}, .wrong = {1}, .sha256 = digest},
       .source = {.file = "r.json", .pointer = "/results/t", .sha256 = digest, .tool = "a tool"}}};
  return result;
}

}  // namespace
}  // namespace moegauge

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  try {
    const int samples = argc == 4 ? std::atoi(argv[3]) : 11;
    moegauge::write_result(argv[1], moegauge::sample(std::atof(argv[2]), samples));
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
