#include "kernels/nvidia/runtime/calls.h"

#include <algorithm>
#include <numeric>

namespace moegauge::cuda {
namespace {

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

std::size_t count(std::int64_t a, std::int64_t b) { return static_cast<std::size_t>(a * b); }

}  // namespace

Slot::Slot(const Layer& layer, std::int64_t tokens)
    : x(count(tokens, layer.hidden_size) * 2),
      topk_ids(count(tokens, layer.top_k) * 4),
      topk_weights(count(tokens, layer.top_k) * 4),
      y(count(tokens, layer.hidden_size) * 2) {}

void Slot::set_inputs(const Stream& stream, const LayerInputs& inputs) const {
  x.upload(stream, std::as_bytes(inputs.x));
  topk_ids.upload(stream, std::as_bytes(inputs.topk_ids));
  topk_weights.upload(stream, std::as_bytes(inputs.topk_weights));
  stream.synchronize();
}

Calls::Calls(const Stream& stream, const Buffer& flush, std::size_t slots, std::size_t weight_sets,
             std::int64_t longest_graph)
    : stream_(&stream), flush_(&flush) {
  // Whole turns of slots and weight sets, so that every graph begins where the last one ended.
  turn_ = static_cast<std::int64_t>(
      std::lcm(std::max<std::size_t>(slots, 1), std::max<std::size_t>(weight_sets, 1)));
  whole_ = std::max(turn_, longest_graph / turn_ * turn_);
}

double Calls::run(const RunRequest& request, const LaunchCall& launch) {
  const ProfiledRange range(request.profiled);
  if (request.cache == Cache::cold) return run_cold(request, launch);
  if (request.launch == Launch::graph) return run_graphs(request, launch);
  return timed([&] {
    for (std::int64_t i = 0; i < request.calls; ++i) launch(i, request);
  });
}

StageClock::StageClock(const Stream& stream) : stream_(&stream) {
  events_.emplace_back().record(stream);
}

void StageClock::mark(const char* stage) {
  events_.emplace_back().record(*stream_);
  stages_.push_back(stage);
}

void StageClock::add_to(std::map<std::string, double>& seconds) const {
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    seconds[stages_[i]] += events_[i + 1].seconds_since(events_[i]);
  }
}

std::map<std::string, double> Calls::stage_seconds(const RunRequest& request,
                                                   const LaunchStages& launch) const {
  RunRequest eager = request;
  eager.launch = Launch::eager;
  const std::int64_t calls = std::clamp<std::int64_t>(turn_, 8, 64);
  std::map<std::string, double> seconds, warm_up;
  for (std::int64_t i = -1; i < calls; ++i) {
    if (eager.cache == Cache::cold) flush_->fill(*stream_, static_cast<unsigned char>(i));
    StageClock clock(*stream_);
    launch(std::max<std::int64_t>(i, 0), eager, clock);
    clock.add_to(i < 0 ? warm_up : seconds);
  }
  for (auto& [stage, sum] : seconds) sum /= static_cast<double>(calls);
  return seconds;
}

// Seconds on the device between two events around `work`.
double Calls::timed(const std::function<void()>& work) const {
  begin_.record(*stream_);
  work();
  end_.record(*stream_);
  return end_.seconds_since(begin_);
}

// Each call alone, behind a write that turns over the L2 cache and is not timed.
double Calls::run_cold(const RunRequest& request, const LaunchCall& launch) {
  double seconds = 0;
  for (std::int64_t i = 0; i < request.calls; ++i) {
    const Graph* captured =
        request.launch == Launch::graph ? &graph(i % turn_, 1, request, launch) : nullptr;
    flush_->fill(*stream_, static_cast<unsigned char>(i));
    seconds += timed([&] {
      if (captured != nullptr) captured->launch(*stream_);
      if (captured == nullptr) launch(i, request);
    });
  }
  return seconds;
}

double Calls::run_graphs(const RunRequest& request, const LaunchCall& launch) {
  const std::int64_t rest = request.calls % whole_;
  const Graph* repeated = request.calls >= whole_ ? &graph(0, whole_, request, launch) : nullptr;
  const Graph* last = rest != 0 ? &graph(0, rest, request, launch) : nullptr;
  return timed([&] {
    for (std::int64_t i = 0; i < request.calls / whole_; ++i) repeated->launch(*stream_);
    if (last != nullptr) last->launch(*stream_);
  });
}

const Graph& Calls::graph(std::int64_t first, std::int64_t calls, const RunRequest& request,
                          const LaunchCall& launch) {
  const auto key = std::tuple(first, calls, request.cache == Cache::hot, request.first_set);
  const auto found = graphs_.find(key);
  if (found != graphs_.end()) return found->second;
  Graph made = Graph::capture(*stream_, [&] {
    for (std::int64_t i = 0; i < calls; ++i) launch(first + i, request);
  });
  return graphs_.emplace(key, std::move(made)).first->second;
}

}  // namespace moegauge::cuda
