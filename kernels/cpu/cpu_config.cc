#include "kernels/cpu/cpu_config.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/base/edit_distance.h"

namespace moegauge::cpu {
namespace {

struct Key {
  std::string_view name;
  std::int64_t CpuConfig::*member;
  std::int64_t least, most;
};

// More threads than processors only help tests of determinism; a handful is let through everywhere.
constexpr std::int64_t kThreadsAlwaysAllowed = 8;

std::array<Key, 6> keys(const Machine& machine) {
  return {{{"BLOCK_SIZE_M", &CpuConfig::block_m, 1, 4096},
           {"BLOCK_SIZE_N", &CpuConfig::block_n, 64, 16384},
           {"BLOCK_SIZE_K", &CpuConfig::block_k, 32, 8192},
           {"num_threads", &CpuConfig::num_threads, 1,
            std::max<std::int64_t>(machine.processors, kThreadsAlwaysAllowed)},
           {"prefetch_distance", &CpuConfig::prefetch_distance, 0, std::int64_t{1} << 20},
           {"launch_per_expert", &CpuConfig::launch_per_expert, 0, 1}}};
}

// Keys of GPU tuned files that say how a GPU kernel is launched.
constexpr std::array<std::string_view, 3> kGpuKeys = {"GROUP_SIZE_M", "num_warps", "num_stages"};

Refusal unknown_key(const std::string& name, const Machine& machine) {
  if (std::ranges::find(kGpuKeys, std::string_view(name)) != kGpuKeys.end()) {
    return {RefusalReason::config_unknown_key,
            name + " says how a GPU kernel is launched and means nothing on a CPU; leave it out"};
  }
  const auto table = keys(machine);
  const auto nearest = std::ranges::min_element(
      table, {}, [&](const Key& key) { return edit_distance(name, key.name); });
  return {RefusalReason::config_unknown_key, "the cpu backend has no config key " + name +
                                                 "; did you mean " + std::string(nearest->name) +
                                                 "?"};
}

Refusal bad_value(std::string sentence) {
  return {RefusalReason::config_value, std::move(sentence)};
}

std::optional<Refusal> out_of_range(const CpuConfig& config, const Machine& machine) {
  for (const Key& key : keys(machine)) {
    const std::int64_t value = config.*key.member;
    if (value >= key.least && value <= key.most) continue;
    std::string sentence = std::string(key.name) + " is " + std::to_string(value) +
                           "; it must lie in [" + std::to_string(key.least) + ", " +
                           std::to_string(key.most) + "]";
    if (key.member == &CpuConfig::num_threads) {
      sentence += ", as this process may use " + std::to_string(machine.processors) + " processors";
    }
    return bad_value(std::move(sentence));
  }
  return std::nullopt;
}

std::optional<Refusal> not_a_multiple(std::string_view name, std::int64_t value, std::int64_t unit,
                                      const Recipe& recipe) {
  const std::int64_t step = recipe.group > 0 ? std::lcm(unit, recipe.group) : unit;
  if (value % step == 0) return std::nullopt;
  return bad_value(std::string(name) + " is " + std::to_string(value) +
                   "; it must be a multiple of " + std::to_string(step));
}

}  // namespace

CpuConfig heuristic_config(const Layer& layer, const Recipe& recipe, std::int64_t tokens,
                           const Machine& machine) {
  const std::int64_t group = std::max<std::int64_t>(recipe.group, 1);
  CpuConfig config;
  // The packed activations of a task stay in half of L2; the other half streams weights.
  const std::int64_t row_bytes =
      std::max(layer.hidden_size, layer.intermediate_size) * std::int64_t{sizeof(float)};
  const std::int64_t rows = machine.l2_bytes / 2 / std::max<std::int64_t>(row_bytes, 1);
  config.block_m =
      std::clamp<std::int64_t>(rows / kRowBlock * kRowBlock, 4 * kRowBlock, 40 * kRowBlock);
  config.block_k = std::lcm<std::int64_t>(128, group);
  config.num_threads = machine.processors;
  // As few tasks per expert as still keep every thread busy to the end: each task packs its rows.
  constexpr std::int64_t kTasksPerThread = 32;
  const std::int64_t experts = std::clamp<std::int64_t>(
      tokens * layer.top_k, 1, std::max<std::int64_t>(layer.local_experts(), 1));
  const std::int64_t per_expert = (kTasksPerThread * config.num_threads + experts - 1) / experts;
  const std::int64_t unit = std::lcm<std::int64_t>(128, group);
  const std::int64_t columns = (layer.intermediate_size + per_expert - 1) / per_expert;
  config.block_n = std::clamp((columns + unit - 1) / unit * unit, unit, 16384 / unit * unit);
  config.prefetch_distance = 4096;
  return config;
}

Config to_config(const CpuConfig& config) {
  Config result;
  for (const Key& key : keys(machine())) result.values[std::string(key.name)] = config.*key.member;
  return result;
}

Expected<CpuConfig, Refusal> parse_config(const Config& config, const Layer& layer,
                                          const Recipe& recipe, std::int64_t tokens,
                                          const Machine& machine) {
  CpuConfig parsed = heuristic_config(layer, recipe, tokens, machine);
  const auto table = keys(machine);
  for (const auto& [name, value] : config.values) {
    const auto key = std::ranges::find(table, std::string_view(name), &Key::name);
    if (key == table.end()) return Unexpected{unknown_key(name, machine)};
    parsed.*key->member = value;
  }
  if (auto refusal = out_of_range(parsed, machine)) return Unexpected{*refusal};
  if (auto refusal = not_a_multiple("BLOCK_SIZE_N", parsed.block_n, 64, recipe)) {
    return Unexpected{*refusal};
  }
  if (auto refusal = not_a_multiple("BLOCK_SIZE_K", parsed.block_k, kPadElements, recipe)) {
    return Unexpected{*refusal};
  }
  const std::int64_t panel = panel_floats(parsed.block_k) * std::int64_t{sizeof(float)};
  if (panel > machine.l2_bytes) {
    return Unexpected{bad_value("BLOCK_SIZE_K " + std::to_string(parsed.block_k) +
                                " needs a decoded panel of " + std::to_string(panel) +
                                " bytes and this CPU's L2 cache has " +
                                std::to_string(machine.l2_bytes) + "; at most " +
                                std::to_string(machine.l2_bytes / panel_floats(sizeof(float))))};
  }
  return parsed;
}

std::vector<Config> candidate_configs(const Layer& layer, const Recipe& recipe, std::int64_t tokens,
                                      const Machine& machine) {
  const CpuConfig start = heuristic_config(layer, recipe, tokens, machine);
  const std::int64_t unit = std::lcm<std::int64_t>(128, std::max<std::int64_t>(recipe.group, 1));
  std::vector<std::int64_t> rows = {start.block_m}, columns = {start.block_n},
                            distances = {start.prefetch_distance};
  const auto add = [](std::vector<std::int64_t>& values, std::int64_t value) {
    if (std::ranges::find(values, value) == values.end()) values.push_back(value);
  };
  for (const std::int64_t factor : {1, 2, 4, 8, 16}) {
    // No task is wider than the matrix.
    if (unit * factor < 2 * std::max(layer.intermediate_size, unit)) add(columns, unit * factor);
  }
  for (const std::int64_t value : {72, 128, 32}) add(rows, value);
  for (const std::int64_t value : {8192, 1024, 0}) add(distances, value);

  std::vector<std::pair<int, Config>> found;
  for (const std::int64_t n : columns) {
    for (const std::int64_t m : rows) {
      for (const std::int64_t distance : distances) {
        const int changed =
            (n != start.block_n) + (m != start.block_m) + (distance != start.prefetch_distance);
        Config config{{{"BLOCK_SIZE_K", start.block_k},
                       {"BLOCK_SIZE_M", m},
                       {"BLOCK_SIZE_N", n},
                       {"prefetch_distance", distance}}};
        if (parse_config(config, layer, recipe, tokens, machine)) {
          found.emplace_back(changed, std::move(config));
        }
      }
    }
  }
  std::ranges::stable_sort(found, {}, &std::pair<int, Config>::first);
  std::vector<Config> configs;
  for (auto& [changed, config] : found) configs.push_back(std::move(config));
  return configs;
}

}  // namespace moegauge::cpu
