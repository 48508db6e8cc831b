#include "kernels/cuda/cuda_plan.h"

#include "kernels/cuda/layer_program.h"
#include "kernels/cuda/workspace.h"
#include "kernels/nvidia/runtime/calls.h"
#include "kernels/nvidia/runtime/prepare.h"
#include "kernels/nvidia/runtime/this_gpu.h"

namespace moegauge::cuda {
namespace {

constexpr std::int64_t longest_graph = 64;  // calls in one graph

// What the plans of one layer share, kept as long as one of them lives.
struct Resident {
  Resident(const Gpu& on, const Problem& asked, const CudaScheme& served)
      : gpu(on),
        problem(asked),
        scheme(served),
        flush(2 * static_cast<std::size_t>(on.l2_bytes())) {}

  const Gpu& gpu;
  const Problem problem;
  const CudaScheme& scheme;
  const Stream stream;
  std::vector<WeightSet> weights;
  const Buffer flush;  // larger than the L2 cache, for Cache::cold
};

class CudaPlan final : public Plan {
 public:
  CudaPlan(std::shared_ptr<const Resident> resident, std::int64_t tokens, const TileConfig& config,
           int slots)
      : resident_(std::move(resident)),
        tokens_(tokens),
        config_(config),
        program_(layer(), resident_->scheme, config, tokens),
        workspace_(layer(), resident_->scheme, config, tokens, resident_->stream),
        calls_(resident_->stream, resident_->flush, static_cast<std::size_t>(slots),
               resident_->weights.size(), longest_graph) {
    identity_ = {.executed_scheme = resident_->problem.scheme->name(),
                 .numerics = resident_->scheme.numerics(layer(), config.promote),
                 .hash = program_.hash()};
    for (int i = 0; i < slots; ++i) slots_.emplace_back(layer(), tokens);
    layer_blocks_ = static_cast<unsigned>(
        config.cluster == 1
            ? resident_->gpu.multiprocessors()
            : config.cluster * program_.kernel(Stage::layer).most_clusters(layer_shape(2)));
  }

  const KernelIdentity& identity() const override { return identity_; }
  int slots() const override { return static_cast<int>(slots_.size()); }

  std::optional<Fault> set_inputs(int slot, const LayerInputs& inputs) override {
    return guarded([&] {
      resident_->gpu.make_current();
      slots_.at(static_cast<std::size_t>(slot)).set_inputs(stream(), inputs);
    });
  }

  std::optional<Fault> poison() override {
    return guarded([&] {
      resident_->gpu.make_current();
      workspace_.poison(stream());
      for (const Slot& slot : slots_) slot.y.fill(stream(), 0xff);
      stream().synchronize();
    });
  }

  Expected<double, Fault> run(const RunRequest& request) override {
    double seconds = 0;
    auto fault = guarded([&] {
      resident_->gpu.make_current();
      seconds = calls_.run(
          request, [this](std::int64_t call, const RunRequest& r) { launch(arguments(call, r)); });
    });
    if (fault) return Unexpected{std::move(*fault)};
    return seconds;
  }

  Expected<std::map<std::string, double>, Fault> stage_seconds(const RunRequest& request) override {
    std::map<std::string, double> seconds;
    auto fault = guarded([&] {
      resident_->gpu.make_current();
      seconds = calls_.stage_seconds(
          request, [this](std::int64_t call, const RunRequest& r, StageClock& clock) {
            launch(arguments(call, r), &clock);
          });
    });
    if (fault) return Unexpected{std::move(*fault)};
    return seconds;
  }

  std::optional<DeviceState> state() const override { return state_of(resident_->gpu); }

  std::optional<Fault> fetch(int slot, std::span<std::uint16_t> y) override {
    return guarded([&] {
      resident_->gpu.make_current();
      slots_.at(static_cast<std::size_t>(slot)).y.download(stream(), std::as_writable_bytes(y));
      stream().synchronize();
    });
  }

 private:
  const Layer& layer() const { return resident_->problem.layer; }
  const Stream& stream() const { return resident_->stream; }

  LaunchShape layer_shape(unsigned blocks, bool overlaps = true) const {
    return {.grid = {blocks, 1, 1},
            .block = moe::kLayerThreads,
            .shared_bytes = static_cast<unsigned>(
                shared_bytes_of_launch(layer(), resident_->scheme, config_, tokens_)),
            .cluster = static_cast<unsigned>(config_.cluster),
            .overlaps_previous = overlaps};
  }

  moe::LayerArgs arguments(std::int64_t call, const RunRequest& request) const {
    return workspace_.bind(slots_[request.slot_of(call, slots_.size())],
                           resident_->weights[request.set_of(call, resident_->weights.size())]);
  }

  // With a clock: no kernel begins before the one ahead of it has ended.
  void launch(const moe::LayerArgs& given, StageClock* clock = nullptr) const {
    if (tokens_ == 0) return;
    const auto mark = [clock](const char* stage) {
      if (clock != nullptr) clock->mark(stage);
    };
    const bool overlaps = clock == nullptr;
    moe::LayerArgs args = given;
    void* pointers[] = {&args};
    const auto m = static_cast<unsigned>(tokens_);
    if (is_alone(layer(), resident_->scheme, config_, tokens_)) {
      program_.kernel(Stage::layer)
          .launch(stream(), layer_shape(layer_blocks_, overlaps), pointers);
      mark("layer");
      return;
    }
    const bool from_amax = resident_->scheme.tensor_scale == TensorScale::from_amax;
    launch_prepare({.count = &program_.kernel(Stage::count),
                    .prepare = &program_.kernel(Stage::prepare),
                    .amax = from_amax ? &program_.kernel(Stage::amax) : nullptr,
                    .overlapping = overlaps},
                   args, resident_->gpu, stream());
    mark("prepare");
    // One kernel does both GEMMs and what is between them.
    program_.kernel(Stage::layer).launch(stream(), layer_shape(layer_blocks_, overlaps), pointers);
    mark("gemm1 to gemm2");
    if (layer().top_k > 1 && args.combined == 0) {
      program_.kernel(Stage::combine)
          .launch(stream(),
                  {.grid = {m, 1, 1}, .block = moe::kCombineThreads, .overlaps_previous = overlaps},
                  pointers);
      mark("reduce");
    }
  }

  std::shared_ptr<const Resident> resident_;
  std::int64_t tokens_;
  TileConfig config_;
  LayerProgram program_;
  Workspace workspace_;
  KernelIdentity identity_;
  std::vector<Slot> slots_;
  Calls calls_;
  unsigned layer_blocks_ = 0;
};

class CudaLayer final : public LoadedLayer {
 public:
  explicit CudaLayer(std::shared_ptr<const Resident> resident) : resident_(std::move(resident)) {}

  std::int64_t weight_bytes() const override {
    return weight_set_bytes(resident_->problem, resident_->scheme);
  }
  int weight_sets() const override { return static_cast<int>(resident_->weights.size()); }

  Expected<std::unique_ptr<Plan>, Fault> plan(std::int64_t tokens, const Config& config,
                                              int slots) override {
    const auto parsed = parse_config(config, resident_->problem.layer, resident_->scheme, tokens,
                                     resident_->gpu.shared_bytes_per_block());
    if (!parsed) return Unexpected{Fault{FaultKind::error, parsed.error().sentence}};
    std::unique_ptr<Plan> made;
    auto fault = guarded([&] {
      resident_->gpu.make_current();
      made = std::make_unique<CudaPlan>(resident_, tokens, *parsed, slots);
    });
    if (fault) return Unexpected{std::move(*fault)};
    return made;
  }

 private:
  std::shared_ptr<const Resident> resident_;
};

}  // namespace

std::unique_ptr<LoadedLayer> load_layer(const Gpu& gpu, const Problem& problem,
                                        const CudaScheme& scheme, const ExpertSource& experts,
                                        int sets) {
  auto resident = std::make_shared<Resident>(gpu, problem, scheme);
  resident->weights = upload_weights(problem, scheme, experts, sets, resident->stream);
  return std::make_unique<CudaLayer>(std::move(resident));
}

}  // namespace moegauge::cuda
