#include "kernels/nvidia/runtime/prepare.h"

namespace moegauge::cuda {
namespace {

// Static shared memory of the prepare kernel: at least two rows of x, three tables of experts and
// up to four of a chunk's 256 pairs.
std::int64_t prepare_bytes(const Layer& layer, int element_bytes) {
  return 2 * layer.hidden_size * element_bytes + 3 * (layer.local_experts() + 1) * 4 + 4 * 256 * 4 +
         256;
}

// Tokens of one block of the prepare kernel: about eight blocks a multiprocessor, or four of wide
// rows, which need more registers, as long as they get few tokens each; a block's pairs must fit
// its table of 256 and lie in one counting group, hence a power of two.
int chunk_tokens(std::int64_t tokens, const Layer& layer) {
  constexpr std::int64_t blocks = 1056;
  const std::int64_t few = layer.hidden_size > 4096 ? 8 : 1;
  std::int64_t chunk = 1;
  while (chunk * 2 * layer.top_k <= 256 && chunk * 2 <= moe::kGroupTokens &&
         (chunk * blocks < tokens || (chunk < few && chunk * blocks / 2 < tokens))) {
    chunk *= 2;
  }
  return static_cast<int>(chunk);
}

}  // namespace

const char* activation_enumerator(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::silu_and_mul:
      return "silu";
    case ActivationKind::gelu_and_mul:
      return "gelu";
    case ActivationKind::gelu_tanh_and_mul:
      return "gelu_tanh";
    case ActivationKind::swiglu_clamped:
      break;
  }
  return "swiglu_clamped";
}

Refusal shape_refusal(const char* what, std::int64_t value, const char* rule) {
  return {RefusalReason::shape,
          std::string(what) + " is " + std::to_string(value) + "; the kernels need " + rule};
}

std::optional<Refusal> refuses_router_weight(const Layer& layer) {
  if (layer.router_weight_on_input && layer.top_k != 1) {
    return Refusal{RefusalReason::router_weight_on_input, "router weight on input with top_k " +
                                                              std::to_string(layer.top_k) +
                                                              "; it is defined for top_k 1 only"};
  }
  if (layer.router_weight_on_input && layer.expert_bias) {
    return Refusal{RefusalReason::expert_bias,
                   "router weight on input is not defined for experts with biases"};
  }
  return std::nullopt;
}

std::optional<Refusal> refuses_prepare(const Layer& layer, int element_bytes) {
  constexpr std::int64_t static_shared = 49152;  // of a block, on every device
  if (layer.hidden_size % 16 != 0) {
    return shape_refusal("hidden_size", layer.hidden_size, "a multiple of 16 (16-byte rows)");
  }
  if (layer.top_k > 32) return shape_refusal("top_k", layer.top_k, "at most 32");
  if (layer.local_experts() > 1024) {
    return shape_refusal("the number of local experts", layer.local_experts(), "at most 1024");
  }
  if (const std::int64_t bytes = prepare_bytes(layer, element_bytes); bytes > static_shared) {
    return Refusal{RefusalReason::shape, "hidden_size " + std::to_string(layer.hidden_size) +
                                             " with " + std::to_string(layer.local_experts()) +
                                             " local experts needs " + std::to_string(bytes) +
                                             " bytes of shared memory to group the tokens; a " +
                                             "block has " + std::to_string(static_shared)};
  }
  if (layer.local_experts() < 1) {
    return shape_refusal("the number of local experts", layer.local_experts(), "at least 1");
  }
  return std::nullopt;
}

void set_prepare_sizes(moe::LayerArgs& args, const Layer& layer, std::int64_t tokens) {
  args.tokens = static_cast<int>(tokens);
  args.chunk_tokens = chunk_tokens(tokens, layer);
  args.self_count = tokens * layer.top_k <= moe::kSelfCountPairs ? 1 : 0;
}

void launch_prepare(const PrepareKernels& kernels, const moe::LayerArgs& given, const Gpu& gpu,
                    const Stream& stream) {
  moe::LayerArgs args = given;
  void* pointers[] = {&args};
  const auto launch = [&](const Kernel& kernel, unsigned blocks) {
    kernel.launch(stream,
                  {.grid = {blocks, 1, 1},
                   .block = moe::kPrepareThreads,
                   .overlaps_previous = kernels.overlapping},
                  pointers);
  };
  const auto blocks = [&](int each) {
    return static_cast<unsigned>((args.tokens + each - 1) / each);
  };
  if (kernels.amax != nullptr)
    launch(*kernels.amax, 4 * static_cast<unsigned>(gpu.multiprocessors()));
  if (args.self_count == 0) launch(*kernels.count, blocks(moe::kGroupTokens));
  launch(*kernels.prepare, blocks(args.chunk_tokens));
}

}  // namespace moegauge::cuda
