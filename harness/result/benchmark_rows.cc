#include "harness/result/benchmark_rows.h"

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <numeric>

#include "harness/result/json_fields.h"

namespace moegauge {
namespace {

constexpr std::array<std::string_view, 10> machine_keys = {"date",
                                                           "host_name",
                                                           "executable",
                                                           "num_cpus",
                                                           "mhz_per_cpu",
                                                           "cpu_scaling_enabled",
                                                           "caches",
                                                           "load_avg",
                                                           "library_build_type",
                                                           "json_schema_version"};

std::string local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  ::localtime_r(&now, &parts);
  char text[40] = {};
  std::strftime(text, sizeof text, "%FT%T%z", &parts);  // 2026-01-31T10:00:00+0100
  std::string date = text;
  return date.insert(date.size() - 2, ":");
}

std::string executable_path() {
  char path[4096] = {};
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : "unknown";
}

double standard_deviation(const std::vector<double>& samples, double mean) {
  if (samples.size() < 2) return 0;
  double sum = 0;
  for (const double sample : samples) sum += (sample - mean) * (sample - mean);
  return std::sqrt(sum / static_cast<double>(samples.size() - 1));
}

// The samples that become rows. They say of a distribution what all do, with less scatter than as
// many drawn at random, so that a rank test on them errs towards "no change".
std::vector<double> row_samples(const std::vector<double>& samples) {
  if (samples.size() <= max_benchmark_rows) return samples;
  std::vector<std::size_t> places(samples.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::ranges::stable_sort(places, {}, [&](std::size_t place) { return samples[place]; });
  std::vector<std::size_t> chosen;
  chosen.reserve(max_benchmark_rows);
  for (std::size_t row = 0; row < max_benchmark_rows; ++row) {
    chosen.push_back(places[(2 * row + 1) * samples.size() / (2 * max_benchmark_rows)]);
  }
  std::ranges::sort(chosen);
  std::vector<double> rows;
  rows.reserve(chosen.size());
  for (const std::size_t place : chosen) rows.push_back(samples[place]);
  return rows;
}

Json row_head(const std::string& id, const std::string& name, std::int64_t family_index,
              std::size_t repetitions) {
  Json row;
  row["name"] = name;
  row["family_index"] = family_index;
  row["per_family_instance_index"] = 0;
  row["run_name"] = id;
  row["run_type"] = "iteration";
  row["repetitions"] = repetitions;
  return row;
}

void put_time(Json& row, double value, const char* unit) {
  row["real_time"] = finite(value, "real_time");
  row["cpu_time"] = value;
  row["time_unit"] = unit;
}

}  // namespace

Json machine_context() {
  const auto& cpu = benchmark::CPUInfo::Get();
  Json context;
  context["date"] = local_time();
  context["host_name"] = benchmark::SystemInfo::Get().name;
  context["executable"] = executable_path();
  context["num_cpus"] = cpu.num_cpus;
  context["mhz_per_cpu"] = std::llround(cpu.cycles_per_second / 1e6);
  if (cpu.scaling != benchmark::CPUInfo::Scaling::UNKNOWN) {
    context["cpu_scaling_enabled"] = cpu.scaling == benchmark::CPUInfo::Scaling::ENABLED;
  }
  context["caches"] = Json::array();
  for (const auto& cache : cpu.caches) {
    Json entry;
    entry["type"] = cache.type;
    entry["level"] = cache.level;
    entry["size"] = cache.size;
    entry["num_sharing"] = cache.num_sharing;
    context["caches"].push_back(std::move(entry));
  }
  context["load_avg"] = cpu.load_avg;
#ifdef NDEBUG
  context["library_build_type"] = "release";
#else
  context["library_build_type"] = "debug";
#endif
  context["json_schema_version"] = 1;
  return context;
}

bool is_machine_context_key(std::string_view key) {
  return std::ranges::find(machine_keys, key) != machine_keys.end();
}

std::vector<Json> benchmark_rows(const CaseRecord& record, std::int64_t family_index) {
  const Measured* measured = record.measured();
  if (measured == nullptr) return {};
  const LatencySummary& latency = measured->latency;
  const std::string id = record.id();
  std::vector<Json> rows;
  const std::vector<double> samples = row_samples(latency.samples);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    Json row = row_head(id, id, family_index, samples.size());
    row["repetition_index"] = i;
    row["threads"] = 1;
    row["iterations"] = 1;
    put_time(row, samples[i] * 1e3, "ns");
    rows.push_back(std::move(row));
  }
  const double deviation = standard_deviation(latency.samples, latency.mean);
  const auto aggregate = [&](const char* name, double value, const char* unit) {
    Json row = row_head(id, id + "_" + name, family_index, latency.samples.size());
    row["run_type"] = "aggregate";
    row["threads"] = 1;
    row["aggregate_name"] = name;
    row["aggregate_unit"] = unit;
    row["iterations"] = latency.samples.size();
    put_time(row, value, "ns");
    rows.push_back(std::move(row));
  };
  aggregate("mean", latency.mean * 1e3, "time");
  aggregate("median", latency.median * 1e3, "time");
  aggregate("stddev", deviation * 1e3, "time");
  // Google Benchmark gives the coefficient of variation, a pure number, in the same fields.
  aggregate("cv", latency.mean > 0 ? deviation / latency.mean : 0, "percentage");
  return rows;
}

}  // namespace moegauge
