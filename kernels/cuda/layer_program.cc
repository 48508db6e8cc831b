#include "kernels/cuda/layer_program.h"

#include <algorithm>

#include "kernels/cuda/tile_rows.h"
#include "kernels/nvidia/device/layer_args.h"
#include "kernels/nvidia/runtime/prepare.h"
#include "kernels/nvidia/runtime/sources.h"

namespace moegauge::cuda {
namespace {

const char* boolean(bool value) { return value ? "true" : "false"; }

CubinCache& cubin_cache() {
  static CubinCache cache(CubinCache::default_folder());
  return cache;
}

}  // namespace

CompileRequest program_request(const Layer& layer, const CudaScheme& scheme,
                               const TileConfig& config, std::int64_t tokens) {
  const bool alone = is_alone(layer, scheme, config, tokens);
  std::string text =
      "#include \"kernels/cuda/device/combine.cuh\"\n"
      "#include \"kernels/cuda/device/layer.cuh\"\n"
      "#include \"kernels/nvidia/device/prepare.cuh\"\n";
  text += std::string("using C = moe::LayerConfig<moe::Scheme::") + scheme.enumerator;
  for (const std::int64_t number :
       {layer.local_experts(), layer.hidden_size, padded_inter(layer), layer.top_k}) {
    text += ", " + std::to_string(number);
  }
  text += std::string(", ") + boolean(layer.router_weight_on_input);
  text += ", " + std::to_string(config.token_tile) + ", " + std::to_string(config.stages);
  text += std::string(", ") + boolean(config.promote) + ", " + boolean(config.split_k) + ", " +
          boolean(!config.swap_ab) + ", " + boolean(config.cluster == 2) + ", " +
          std::to_string(config.dealt);
  const IntFormat none = {.group = 0};
  const IntFormat& integers = scheme.integers ? *scheme.integers : none;
  text += ", " + std::to_string(integers.group) + ", " + boolean(integers.zero_points) + ", " +
          boolean(integers.ordered);
  text += std::string(", moe::Activation::") + activation_enumerator(layer.activation.kind) + ", " +
          boolean(layer.expert_bias) + ", " +
          boolean(scheme.block_scales() &&
                  scale_rows(layer.intermediate_size, layer.gate_up_order) != 64) +
          ", " + boolean(layer.dtype == Dtype::fp16) + ", " + boolean(alone) + ">;\n";
  text +=
      "static_assert(C::kSharedBytes == " + std::to_string(shared_bytes(layer, scheme, config)) +
      " && C::kAloneMost == " + std::to_string(alone_room(layer, scheme, config).tokens) +
      " && sizeof(moe::LayerArgs) == " + std::to_string(sizeof(moe::LayerArgs)) +
      ", \"host and device disagree on sizes\");\n";
  std::vector<std::string> kernels = {"moe::count_kernel<C>", "moe::prepare_kernel<C>",
                                      "moe::layer_kernel<C>", "moe::combine_kernel<C>"};
  if (scheme.tensor_scale == TensorScale::from_amax) kernels.push_back("moe::amax_kernel<C>");
  return {.main = {"layer.cu", std::move(text)},
          .includes = device_sources("kernels/cuda/device/"),
          .options = {"-std=c++17", "-Xptxas=-v"},
          .arch = "sm_90a",
          .kernels = std::move(kernels)};
}

void compile_program(const Layer& layer, const CudaScheme& scheme, const TileConfig& config,
                     std::int64_t tokens) {
  static_cast<void>(cubin_cache().get(program_request(layer, scheme, config, tokens)));
}

LayerProgram::LayerProgram(const Layer& layer, const CudaScheme& scheme, const TileConfig& config,
                           std::int64_t tokens) {
  const auto entry = cubin_cache().get(program_request(layer, scheme, config, tokens));
  if (!entry) {
    throw CudaFault(
        {FaultKind::error, "the layer's kernels do not compile: " + entry.error().sentence});
  }
  hash_ = entry->hash;
  for (const std::string& name : entry->cubin->names)
    kernels_.emplace_back(entry->cubin->image, name);
  kernel(Stage::layer)
      .allow_shared_bytes(
          static_cast<std::size_t>(shared_bytes_of_launch(layer, scheme, config, tokens)));
}

}  // namespace moegauge::cuda
