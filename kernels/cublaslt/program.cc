#include "kernels/cublaslt/program.h"

#include "kernels/cublaslt/device/library_args.cuh"
#include "kernels/nvidia/device/layer_args.h"
#include "kernels/nvidia/runtime/cubin_cache.h"
#include "kernels/nvidia/runtime/prepare.h"
#include "kernels/nvidia/runtime/sources.h"

namespace moegauge::cublaslt {

using cuda::CompileRequest;

namespace {

const char* boolean(bool value) { return value ? "true" : "false"; }

cuda::CubinCache& cubin_cache() {
  static cuda::CubinCache cache(cuda::CubinCache::default_folder());
  return cache;
}

bool is_static(const Problem& problem) { return problem.scheme->traits().activation.static_scale; }

// Which kernels a program has besides those that all have, in the order of Stage.
std::vector<std::pair<Stage, std::string>> kernels_of(const Problem& problem,
                                                      const LibraryScheme& scheme) {
  std::vector<std::pair<Stage, std::string>> kernels = {
      {Stage::count, "moe::count_kernel<C>"},
      {Stage::prepare, "moe::prepare_kernel<C>"},
      {Stage::activation, "moe::activation_kernel<L>"},
      {Stage::reduce, "moe::reduce_kernel<L>"}};
  if (scheme.scaling == Scaling::tensor && !is_static(problem)) {
    kernels.emplace_back(Stage::amax, "moe::amax_kernel<C>");
    kernels.emplace_back(Stage::quantise, "moe::quantise_kernel<L>");
  }
  if (scheme.scaling == Scaling::outer_vectors || scheme.scaling == Scaling::blocks) {
    kernels.emplace_back(Stage::regroup, "moe::regroup_kernel");
  }
  if (scheme.integer_bits != 0) {
    const bool fp16 = problem.layer.dtype == Dtype::fp16;
    kernels.emplace_back(Stage::dequantise,
                         std::string("moe::dequantise_kernel<") + boolean(fp16) + ">");
  }
  return kernels;
}

}  // namespace

bool keeps_wide_sums(const Layer& layer) {
  return layer.expert_bias || layer.router_weight_on_input;
}

CompileRequest program_request(const Problem& problem, const LibraryScheme& scheme) {
  const Layer& layer = problem.layer;
  const char* enumerator = is_static(problem) ? scheme.static_enumerator : scheme.enumerator;
  const std::int64_t padded = (layer.intermediate_size + 63) / 64 * 64;
  const bool blocks = scheme.scaling == Scaling::blocks;
  std::string text =
      "#include \"kernels/cublaslt/device/around.cuh\"\n"
      "#include \"kernels/cublaslt/device/dequantise.cuh\"\n";
  text += std::string("using C = moe::LayerConfig<moe::Scheme::") + enumerator;
  for (const std::int64_t number :
       {layer.local_experts(), layer.hidden_size, padded, layer.top_k}) {
    text += ", " + std::to_string(number);
  }
  // A tile that is never multiplied: 8 tokens, 4 stages.
  text += std::string(", ") + boolean(layer.router_weight_on_input) + ", 8, 4, " + boolean(blocks) +
          ", false, false, false, 1, 0, false, false, moe::Activation::" +
          cuda::activation_enumerator(layer.activation.kind) + ", " + boolean(layer.expert_bias) +
          ", false, " + boolean(layer.dtype == Dtype::fp16) + ">;\n";
  text += "using L = moe::Library<C, " + std::to_string(layer.intermediate_size) + ", " +
          boolean(keeps_wide_sums(layer)) + ", " +
          boolean(layer.gate_up_order == GateUpOrder::interleaved) + ">;\n";
  text += "static_assert(sizeof(moe::LayerArgs) == " + std::to_string(sizeof(moe::LayerArgs)) +
          " && sizeof(moe::LibraryArgs) == " + std::to_string(sizeof(moe::LibraryArgs)) +
          " && sizeof(moe::IntegerArgs) == " + std::to_string(sizeof(moe::IntegerArgs)) +
          " && sizeof(moe::RegroupArgs) == " + std::to_string(sizeof(moe::RegroupArgs)) +
          ", \"host and device disagree on sizes\");\n";
  std::vector<std::string> names;
  for (const auto& [stage, name] : kernels_of(problem, scheme)) names.push_back(name);
  return {.main = {"library_layer.cu", std::move(text)},
          .includes = cuda::device_sources("kernels/cublaslt/device/"),
          .options = {"-std=c++17", "-Xptxas=-v"},
          .arch = "sm_90a",
          .kernels = std::move(names)};
}

void compile_program(const Problem& problem, const LibraryScheme& scheme) {
  static_cast<void>(cubin_cache().get(program_request(problem, scheme)));
}

Program::Program(const Problem& problem, const LibraryScheme& scheme) {
  const auto entry = cubin_cache().get(program_request(problem, scheme));
  if (!entry) {
    throw cuda::CudaFault({FaultKind::error, "the kernels around the library's do not compile: " +
                                                 entry.error().sentence});
  }
  hash_ = entry->hash;
  const auto kernels = kernels_of(problem, scheme);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    kernels_.emplace(kernels[i].first, cuda::Kernel(entry->cubin->image, entry->cubin->names[i]));
  }
}

}  // namespace moegauge::cublaslt
