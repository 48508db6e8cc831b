// Runs layers of gfx942 on the emulator and compares them with the oracle: exits 0 where all are
// within the limits, 1 where one is not. For mutation_test.py, which links it with spoiled kernels.
// Tiles are those of the list that the script compiles.
#include <cstdio>
#include <string>

#include "kernels/hip/emulator/emulated_backends.h"
#include "reference/dtype.h"
#include "reference/error.h"
#include "reference/inputs.h"
#include "reference/oracle.h"

namespace moegauge {
namespace {

// Why the layer is wrong; empty if it is not.
std::string wrong(const Backend& backend, const char* name, const Config& config) {
  const std::shared_ptr<const Scheme> scheme = make_scheme(name);
  Layer layer = {.experts = 4, .top_k = 2, .hidden_size = 296, .intermediate_size = 176};
  layer.expert_map = {0, -1, 1, 2};
  layer.expert_bias = true;
  constexpr std::int64_t tokens = 35;
  const auto experts = generated_experts(layer, scheme, Distribution::gaussian, 5, 2);
  const auto loaded = backend.load({layer, scheme, tokens}, *experts, 1);
  if (!loaded) return loaded.error().sentence;
  const auto plan = loaded.value()->plan(tokens, config, 1);
  if (!plan) return plan.error().sentence;
  const OwnedInputs in =
      generate_inputs(layer, Distribution::gaussian, {}, tokens, 5, 0, scheme.get());
  Plan& p = *plan.value();
  if (p.set_inputs(0, in.view()) || p.poison()) return "inputs";
  if (const auto ran = p.run({}); !ran) return ran.error().sentence;
  std::vector<std::uint16_t> y(in.x.size());
  if (p.fetch(0, y)) return "fetch";
  std::vector<double> values;
  for (const std::uint16_t bits : y)
    values.push_back(static_cast<double>(to_float(layer.dtype, bits)));
  const Truth truth = compute_truth(layer, *scheme, p.identity().numerics, *experts, in.view(), 1);
  const ErrorMetrics error = measure_error(values, truth.emulated, truth.magnitude, tokens,
                                           layer.hidden_size, {}, layer.dtype);
  const ErrorLimits limits = scheme->error_limits(layer.dtype, false);
  if (error.non_finite == 0 && error.relative_l2 <= limits.relative_l2 &&
      error.worst_token <= limits.worst_token) {
    return "";
  }
  return "relative error " + std::to_string(error.relative_l2) + ", worst token " +
         std::to_string(error.worst_token) + ", not finite " + std::to_string(error.non_finite);
}

int probe() {
  const auto backend = make_emulated_backend("gfx942", 7);
  const auto tile = [](std::int64_t rows, std::int64_t columns, std::int64_t dim) {
    return Config{
        {{"BLOCK_SIZE_M", rows}, {"BLOCK_SIZE_N", columns}, {"matrix_instr_nonkdim", dim}}};
  };
  int code = 0;
  for (const auto& [scheme, config] :
       {std::pair("fp8_block", tile(16, 32, 16)), std::pair("fp8_block", tile(32, 128, 16)),
        std::pair("fp8_block", tile(64, 128, 32)), std::pair("fp8_ptpc", tile(16, 32, 16))}) {
    const std::string why = wrong(*backend, scheme, config);
    if (why.empty()) continue;
    std::printf("%s: %s\n", scheme, why.c_str());
    code = 1;
  }
  return code;
}

}  // namespace
}  // namespace moegauge

int main() { return moegauge::probe(); }
