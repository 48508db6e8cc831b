#include "kernels/cuda/layer_program.h"

#include "kernels/cuda/device/layer_args.h"
#include "kernels/cuda/runtime/sources.h"

namespace moegauge::cuda {
namespace {

const char* boolean(bool value) { return value ? "true" : "false"; }

CubinCache& cubin_cache() {
  static CubinCache cache(CubinCache::default_folder());
  return cache;
}

}  // namespace

CompileRequest program_request(const Layer& layer, const CudaScheme& scheme,
                               const TileConfig& config) {
  std::string text =
      "#include \"kernels/cuda/device/combine.cuh\"\n"
      "#include \"kernels/cuda/device/layer.cuh\"\n"
      "#include \"kernels/cuda/device/prepare.cuh\"\n";
  text += std::string("using C = moe::LayerConfig<moe::Scheme::") + scheme.enumerator;
  for (const std::int64_t number :
       {layer.local_experts(), layer.hidden_size, layer.intermediate_size, layer.top_k}) {
    text += ", " + std::to_string(number);
  }
  text += std::string(", ") + boolean(layer.router_weight_on_input);
  text += ", " + std::to_string(config.token_tile) + ", " + std::to_string(config.stages);
  text += std::string(", ") + boolean(config.promote) + ", " + boolean(config.split_k) + ", " +
          boolean(!config.swap_ab) + ", " + boolean(config.cluster == 2) + ", " +
          std::to_string(config.dealt);
  if (scheme.integers) {
    text += ", " + std::to_string(scheme.integers->group) + ", " +
            boolean(scheme.integers->zero_points) + ", " + boolean(scheme.integers->ordered);
  }
  text += ">;\n";
  text +=
      "static_assert(C::kSharedBytes == " + std::to_string(shared_bytes(layer, scheme, config)) +
      " && sizeof(moe::LayerArgs) == " + std::to_string(sizeof(moe::LayerArgs)) +
      ", \"host and device disagree on sizes\");\n";
  return {.main = {"layer.cu", std::move(text)},
          .includes = device_sources(),
          .options = {"-std=c++17", "-Xptxas=-v"},
          .arch = "sm_90a",
          .kernels = {"moe::count_kernel<C>", "moe::prepare_kernel<C>", "moe::layer_kernel<C>",
                      "moe::combine_kernel<C>"}};
}

LayerProgram::LayerProgram(const Layer& layer, const CudaScheme& scheme, const TileConfig& config) {
  const auto entry = cubin_cache().get(program_request(layer, scheme, config));
  if (!entry) {
    throw CudaFault(
        {FaultKind::error, "the layer's kernels do not compile: " + entry.error().sentence});
  }
  hash_ = entry->hash;
  for (const std::string& name : entry->cubin->names)
    kernels_.emplace_back(entry->cubin->image, name);
  kernel(Stage::layer)
      .allow_shared_bytes(static_cast<std::size_t>(shared_bytes(layer, scheme, config)));
}

}  // namespace moegauge::cuda
