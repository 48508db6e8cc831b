#include "kernels/hip/layer_plan.h"

#include <algorithm>
#include <utility>

#include "kernels/hip/packing.h"
#include "kernels/hip/workspace.h"
#include "reference/base/fnv1a.h"
#include "reference/schemes/matrix_storage.h"

namespace moegauge::hip {
namespace {

const char* unit_name(ActivationUnit unit) {
  switch (unit) {
    case ActivationUnit::group:
      return "_group";
    case ActivationUnit::row:
      return "_row";
    default:
      return "_tensor";
  }
}

// What the plans of one layer share.
struct Resident {
  std::shared_ptr<const Processor> processor;
  Problem problem;
  LayerFormat format;
  std::string code;
  std::vector<WeightSet> weights = {};
  Buffer expert_map = {};
  float x_scale = 0, h_scale = 0;  // static schemes

  LayerConstants constants() const {
    return {problem.layer, format, x_scale, h_scale, expert_map.as<const int>()};
  }
};

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

// w13's bias with gate before up.
std::vector<float> ordered_bias(const Layer& layer, std::vector<float> bias) {
  if (layer.gate_up_order == GateUpOrder::concatenated || bias.empty()) return bias;
  std::vector<float> ordered(bias.size());
  const std::size_t n = bias.size() / 2;
  for (std::size_t i = 0; i < bias.size(); ++i) ordered[i / 2 + i % 2 * n] = bias[i];
  return ordered;
}

void upload_matrix(const Resident& resident, const ExpertSource& experts, std::int64_t expert,
                   Role role, const Buffer& values, const Buffer& scales) {
  const Layer& layer = resident.problem.layer;
  const Scheme& scheme = *resident.problem.scheme;
  MatrixStorage canonical(scheme, weight_shape(layer, role));
  experts.quantized(expert, canonical.view());
  const PackedShape shape = packed_shape(layer, resident.format, role);
  std::vector<std::byte> packed(shape.values);
  std::vector<float> packed_scales(shape.scales);
  pack(layer, scheme, resident.format, std::as_const(canonical).view(), packed, packed_scales);
  const auto e = static_cast<std::size_t>(expert);
  values.upload(packed, e * packed.size());
  scales.upload(bytes_of(packed_scales), e * packed_scales.size() * sizeof(float));
}

WeightSet allocate_set(const Resident& resident) {
  const Layer& layer = resident.problem.layer;
  const auto experts = static_cast<std::size_t>(layer.local_experts());
  const PackedShape w13 = packed_shape(layer, resident.format, Role::w13);
  const PackedShape w2 = packed_shape(layer, resident.format, Role::w2);
  const std::size_t biased = layer.expert_bias ? experts * sizeof(float) : 0;
  const Processor& on = *resident.processor;
  return {.w13 = Buffer(on, experts * w13.values),
          .w2 = Buffer(on, experts * w2.values),
          .w13_scale = Buffer(on, experts * w13.scales * sizeof(float)),
          .w2_scale = Buffer(on, experts * w2.scales * sizeof(float)),
          .w13_bias = Buffer(on, biased * static_cast<std::size_t>(2 * layer.intermediate_size)),
          .w2_bias = Buffer(
              on, layer.adds_w2_bias ? biased * static_cast<std::size_t>(layer.hidden_size) : 0)};
}

WeightSet upload_set(const Resident& resident, const ExpertSource& experts) {
  const Layer& layer = resident.problem.layer;
  WeightSet set = allocate_set(resident);
  for (std::int64_t e = 0; e < layer.local_experts(); ++e) {
    upload_matrix(resident, experts, e, Role::w13, set.w13, set.w13_scale);
    upload_matrix(resident, experts, e, Role::w2, set.w2, set.w2_scale);
    if (!layer.expert_bias) continue;
    const auto i = static_cast<std::size_t>(e);
    const std::vector<float> w13 = ordered_bias(layer, experts.bias(e, Role::w13));
    set.w13_bias.upload(bytes_of(w13), i * w13.size() * sizeof(float));
    if (!layer.adds_w2_bias) continue;
    const std::vector<float> w2 = experts.bias(e, Role::w2);
    set.w2_bias.upload(bytes_of(w2), i * w2.size() * sizeof(float));
  }
  return set;
}

WeightSet copy_of(const Resident& resident, const WeightSet& set) {
  WeightSet copy = allocate_set(resident);
  for (Buffer WeightSet::*part :
       {&WeightSet::w13, &WeightSet::w2, &WeightSet::w13_scale, &WeightSet::w2_scale,
        &WeightSet::w13_bias, &WeightSet::w2_bias}) {
    const Buffer &from = set.*part, &to = copy.*part;
    if (from.bytes() != 0)
      resident.processor->copy(to.as<void>(), from.as<const void>(), from.bytes());
  }
  return copy;
}

class HipPlan final : public Plan {
 public:
  HipPlan(std::shared_ptr<const Resident> resident, std::int64_t tokens, const Tile& tile,
          int slots)
      : resident_(std::move(resident)),
        launches_(
            layer_launches(processor().architecture(), resident_->format, layer(), tile, tokens)),
        workspace_(processor(), resident_->constants(), tile, tokens) {
    std::string compiled = resident_->code + std::string(processor().architecture().name);
    for (const KernelLaunch& launch : launches_) compiled += "\n" + launch.kernel;
    identity_ = {.executed_scheme = resident_->problem.scheme->name(),
                 .numerics = resident_->format.numerics,
                 .hash = fnv1a_hex(compiled)};
    const auto m = static_cast<std::size_t>(tokens);
    const auto k = static_cast<std::size_t>(layer().hidden_size);
    const std::size_t pairs = m * static_cast<std::size_t>(layer().top_k);
    for (int i = 0; i < slots; ++i) {
      slots_.push_back({Buffer(processor(), m * k * 2), Buffer(processor(), pairs * 4),
                        Buffer(processor(), pairs * 4), Buffer(processor(), m * k * 2)});
    }
  }

  const KernelIdentity& identity() const override { return identity_; }
  int slots() const override { return static_cast<int>(slots_.size()); }

  std::optional<Fault> set_inputs(int slot, const LayerInputs& inputs) override {
    return guarded([&] {
      const Slot& to = slots_.at(static_cast<std::size_t>(slot));
      to.x.upload(std::as_bytes(inputs.x));
      to.topk_ids.upload(std::as_bytes(inputs.topk_ids));
      to.topk_weights.upload(std::as_bytes(inputs.topk_weights));
    });
  }

  std::optional<Fault> poison() override {
    return guarded([&] {
      workspace_.poison();
      for (const Slot& slot : slots_) slot.y.fill(0xff);
    });
  }

  Expected<double, Fault> run(const RunRequest& request) override {
    double seconds = 0;
    auto fault = guarded([&] {
      std::vector<Call> calls;
      for (std::int64_t i = 0; i < request.calls; ++i) calls.push_back(call(i, request));
      if (request.cache == Cache::cold && processor().flush_bytes() != 0) {
        for (const Call& one : calls) {  // each alone, behind a write that is not timed
          if (flush_.bytes() == 0) flush_ = Buffer(processor(), processor().flush_bytes());
          flush_.fill(0);
          seconds += processor().run(std::span(&one, 1));
        }
        return;
      }
      seconds = request.launch == Launch::graph && processor().serves_graphs()
                    ? processor().run_graph(calls)
                    : processor().run(calls);
    });
    if (fault) return Unexpected{std::move(*fault)};
    return seconds;
  }

  std::optional<Fault> fetch(int slot, std::span<std::uint16_t> y) override {
    return guarded([&] {
      if (y.empty()) return;
      processor().download(std::as_writable_bytes(y),
                           slots_.at(static_cast<std::size_t>(slot)).y.as<void>());
    });
  }

 private:
  const Layer& layer() const { return resident_->problem.layer; }
  const Processor& processor() const { return *resident_->processor; }
  Call call(std::int64_t i, const RunRequest& request) const {
    return {launches_,
            workspace_.bind(slots_[request.slot_of(i, slots_.size())],
                            resident_->weights[request.set_of(i, resident_->weights.size())])};
  }

  std::shared_ptr<const Resident> resident_;
  std::vector<KernelLaunch> launches_;
  Workspace workspace_;
  std::vector<Slot> slots_;
  Buffer flush_;
  KernelIdentity identity_;
};

class HipLayer final : public LoadedLayer {
 public:
  explicit HipLayer(std::shared_ptr<const Resident> resident) : resident_(std::move(resident)) {}

  std::int64_t weight_bytes() const override {
    return weight_set_bytes(resident_->problem, resident_->format);
  }
  int weight_sets() const override { return static_cast<int>(resident_->weights.size()); }

  Expected<std::unique_ptr<Plan>, Fault> plan(std::int64_t tokens, const Config& config,
                                              int slots) override {
    const auto tile = parse_config(resident_->processor->architecture(), resident_->format,
                                   resident_->problem.layer, tokens, config);
    if (!tile) return Unexpected{Fault{FaultKind::error, tile.error().sentence}};
    std::unique_ptr<Plan> made;
    auto fault =
        guarded([&] { made = std::make_unique<HipPlan>(resident_, tokens, *tile, slots); });
    if (fault) return Unexpected{std::move(*fault)};
    return made;
  }

 private:
  std::shared_ptr<const Resident> resident_;
};

}  // namespace

std::vector<KernelLaunch> layer_launches(const Architecture& architecture,
                                         const LayerFormat& format, const Layer& layer,
                                         const Tile& tile, std::int64_t tokens) {
  if (tokens == 0) return {};
  constexpr int threads = moe::kPrepareThreads;
  const auto m = static_cast<int>(tokens), pairs = static_cast<int>(tokens * layer.top_k);
  const auto divided_up = [](std::int64_t a, std::int64_t b) {
    return static_cast<int>((a + b - 1) / b);
  };
  const int chunks = divided_up(tokens, moe::kChunkTokens);
  const std::int64_t token_tiles = tile_capacity(layer, tokens, tile.tokens);
  const std::int64_t h_columns =
      divided_up(layer.intermediate_size * format.element_bytes, moe::kStepBytes) *
      moe::kStepBytes / format.element_bytes;
  const int gemm_threads = tile.waves * architecture.lanes;
  const std::string quantised =
      (format.int8 ? "int8" : "fp8") + std::string(unit_name(format.activations));

  std::vector<KernelLaunch> launches;
  if (chunks > 1) launches.push_back({"count_pairs", chunks, threads});
  launches.push_back({"group_pairs", chunks, threads});
  if (format.activations == ActivationUnit::tensor) launches.push_back({"amax_x", m, threads});
  if (format.activations != ActivationUnit::none)
    launches.push_back({"quantise_x_" + quantised, m, threads});
  else if (layer.hidden_size * 2 % moe::kStepBytes != 0)
    launches.push_back({"pad_x", m, threads});
  launches.push_back(
      {gemm_name("gate_up", format, tile) + (layer.router_weight_on_input ? "_on_input" : ""),
       static_cast<int>(token_tiles) * divided_up(h_columns, tile.columns), gemm_threads});
  if (format.activations == ActivationUnit::tensor) launches.push_back({"amax_h", pairs, threads});
  // A tile of 128 columns is a group of them: its epilogue quantises.
  const bool in_epilogue = format.activations == ActivationUnit::group && tile.columns == 128;
  if (format.activations != ActivationUnit::none && !in_epilogue)
    launches.push_back({"quantise_h_" + quantised, pairs, threads});
  launches.push_back(
      {gemm_name("down", format, tile),
       static_cast<int>(token_tiles) * divided_up(layer.hidden_size, 2 * tile.columns),
       gemm_threads});
  launches.push_back({"combine", m, threads});
  return launches;
}

std::int64_t weight_set_bytes(const Problem& problem, const LayerFormat& format) {
  std::size_t bytes = 0;
  for (const Role role : {Role::w13, Role::w2}) {
    const PackedShape shape = packed_shape(problem.layer, format, role);
    bytes += shape.values + shape.scales * sizeof(float);
  }
  return problem.layer.local_experts() * static_cast<std::int64_t>(bytes);
}

std::unique_ptr<LoadedLayer> load_layer(std::shared_ptr<const Processor> processor,
                                        const Problem& problem, const LayerFormat& format,
                                        const ExpertSource& experts, int sets, std::string code) {
  auto resident =
      std::make_shared<Resident>(Resident{std::move(processor), problem, format, std::move(code)});
  const std::vector<std::int32_t>& map = problem.layer.expert_map;
  resident->expert_map = Buffer(*resident->processor, map.size() * sizeof(std::int32_t));
  resident->expert_map.upload(bytes_of(map));
  if (problem.scheme->traits().activation.static_scale) {
    const float factor = format.normalised ? 2.0f : 1.0f;
    resident->x_scale = factor * experts.activation_scale(Role::w13);
    resident->h_scale = factor * experts.activation_scale(Role::w2);
  }
  resident->weights.push_back(upload_set(*resident, experts));
  for (int set = 1; set < sets; ++set)
    resident->weights.push_back(copy_of(*resident, resident->weights.front()));
  return std::make_unique<HipLayer>(std::move(resident));
}

}  // namespace moegauge::hip
