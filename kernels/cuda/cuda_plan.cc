#include "kernels/cuda/cuda_plan.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <tuple>

#include "kernels/cuda/layer_program.h"
#include "kernels/cuda/runtime/telemetry.h"
#include "kernels/cuda/workspace.h"

namespace moegauge::cuda {
namespace {

constexpr std::int64_t longest_graph = 64;  // calls in one graph

// What a profiler that was told to wait looks at, until the device is done.
class ProfiledRange {
 public:
  explicit ProfiledRange(bool wanted) : wanted_(wanted) {
    if (wanted_) require_driver().profiler_start();
  }
  ~ProfiledRange() {
    if (!wanted_) return;
    require_driver().ctx_synchronize();
    require_driver().profiler_stop();
  }
  ProfiledRange(const ProfiledRange&) = delete;
  ProfiledRange& operator=(const ProfiledRange&) = delete;

 private:
  bool wanted_;
};

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
        workspace_(layer(), resident_->scheme, config, tokens, resident_->stream) {
    identity_ = {.executed_scheme = resident_->problem.scheme->name(),
                 .numerics = resident_->scheme.numerics(layer(), config.promote),
                 .hash = program_.hash()};
    const auto m = static_cast<std::size_t>(tokens),
               k = static_cast<std::size_t>(layer().hidden_size),
               pairs = m * static_cast<std::size_t>(layer().top_k);
    for (int i = 0; i < slots; ++i) {
      slots_.push_back(
          {Buffer(m * k * 2), Buffer(pairs * 4), Buffer(pairs * 4), Buffer(m * k * 2)});
    }
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
      const Slot& to = slots_.at(static_cast<std::size_t>(slot));
      to.x.upload(stream(), std::as_bytes(inputs.x));
      to.topk_ids.upload(stream(), std::as_bytes(inputs.topk_ids));
      to.topk_weights.upload(stream(), std::as_bytes(inputs.topk_weights));
      stream().synchronize();
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
      const ProfiledRange range(request.profiled);
      seconds = request.cache == Cache::cold      ? run_cold(request)
                : request.launch == Launch::graph ? run_graphs(request)
                                                  : run_eager(request);
    });
    if (fault) return Unexpected{std::move(*fault)};
    return seconds;
  }

  std::optional<DeviceState> state() const override {
    static const auto telemetry = Telemetry::open(resident_->gpu.pci_bus_id());
    if (!telemetry) return std::nullopt;
    return telemetry->state();
  }

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

  LaunchShape layer_shape(unsigned blocks) const {
    return {.grid = {blocks, 1, 1},
            .block = moe::kLayerThreads,
            .shared_bytes = static_cast<unsigned>(
                shared_bytes_of_launch(layer(), resident_->scheme, config_, tokens_)),
            .cluster = static_cast<unsigned>(config_.cluster),
            .overlaps_previous = true};
  }

  moe::LayerArgs arguments(std::int64_t call, const RunRequest& request) const {
    return workspace_.bind(slots_[request.slot_of(call, slots_.size())],
                           resident_->weights[request.set_of(call, resident_->weights.size())]);
  }

  void launch(const moe::LayerArgs& given) const {
    if (tokens_ == 0) return;
    moe::LayerArgs args = given;
    void* pointers[] = {&args};
    const auto m = static_cast<unsigned>(tokens_);
    const auto blocks = [&](unsigned each) { return (m + each - 1) / each; };
    if (is_alone(layer(), resident_->scheme, config_, tokens_)) {
      program_.kernel(Stage::layer).launch(stream(), layer_shape(layer_blocks_), pointers);
      return;
    }
    if (resident_->scheme.tensor_scale == TensorScale::from_amax) {
      program_.kernel(Stage::amax)
          .launch(stream(),
                  {.grid = {4 * static_cast<unsigned>(resident_->gpu.multiprocessors()), 1, 1},
                   .block = moe::kPrepareThreads,
                   .overlaps_previous = true},
                  pointers);
    }
    if (args.self_count == 0) {
      program_.kernel(Stage::count)
          .launch(stream(),
                  {.grid = {blocks(moe::kGroupTokens), 1, 1},
                   .block = moe::kPrepareThreads,
                   .overlaps_previous = true},
                  pointers);
    }
    program_.kernel(Stage::prepare)
        .launch(stream(),
                {.grid = {blocks(static_cast<unsigned>(args.chunk_tokens)), 1, 1},
                 .block = moe::kPrepareThreads,
                 .overlaps_previous = true},
                pointers);
    program_.kernel(Stage::layer).launch(stream(), layer_shape(layer_blocks_), pointers);
    if (layer().top_k > 1 && args.combined == 0) {
      program_.kernel(Stage::combine)
          .launch(stream(),
                  {.grid = {m, 1, 1}, .block = moe::kCombineThreads, .overlaps_previous = true},
                  pointers);
    }
  }

  // Seconds on the device between two events around `work`.
  template <typename Work>
  double timed(Work&& work) const {
    begin_.record(stream());
    work();
    end_.record(stream());
    return end_.seconds_since(begin_);
  }

  double run_eager(const RunRequest& request) const {
    return timed([&] {
      for (std::int64_t i = 0; i < request.calls; ++i) launch(arguments(i, request));
    });
  }

  // Each call alone, behind a write that turns over the L2 cache and is not timed.
  double run_cold(const RunRequest& request) const {
    double seconds = 0;
    for (std::int64_t i = 0; i < request.calls; ++i) {
      const moe::LayerArgs args = arguments(i, request);
      resident_->flush.fill(stream(), static_cast<unsigned char>(i));
      seconds += timed([&] { launch(args); });
    }
    return seconds;
  }

  double run_graphs(const RunRequest& request) {
    // Whole turns of slots and weight sets, so that every graph begins where the last one ended.
    const auto turn = static_cast<std::int64_t>(std::lcm(slots_.size(), resident_->weights.size()));
    const std::int64_t whole = std::max<std::int64_t>(turn, longest_graph / turn * turn);
    const std::int64_t rest = request.calls % whole;
    const Graph* repeated = request.calls >= whole ? &graph(whole, request) : nullptr;
    const Graph* last = rest != 0 ? &graph(rest, request) : nullptr;
    return timed([&] {
      for (std::int64_t i = 0; i < request.calls / whole; ++i) repeated->launch(stream());
      if (last != nullptr) last->launch(stream());
    });
  }

  const Graph& graph(std::int64_t calls, const RunRequest& request) {
    const auto key = std::tuple(calls, request.cache == Cache::hot, request.first_set);
    const auto found = graphs_.find(key);
    if (found != graphs_.end()) return found->second;
    Graph made = Graph::capture(stream(), [&] {
      for (std::int64_t i = 0; i < calls; ++i) launch(arguments(i, request));
    });
    return graphs_.emplace(key, std::move(made)).first->second;
  }

  std::shared_ptr<const Resident> resident_;
  std::int64_t tokens_;
  TileConfig config_;
  LayerProgram program_;
  Workspace workspace_;
  KernelIdentity identity_;
  std::vector<Slot> slots_;
  std::map<std::tuple<std::int64_t, bool, std::int64_t>, Graph> graphs_;
  unsigned layer_blocks_ = 0;
  Event begin_, end_;
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
