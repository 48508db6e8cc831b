// Calls of a layer and how they are timed, whatever they launch: eagerly, each behind a flush of
// the L2 cache, or as graphs.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/backend.h"
#include "kernels/nvidia/runtime/device.h"

namespace moegauge::cuda {

// One input slot on the device.
struct Slot {
  Slot(const Layer& layer, std::int64_t tokens);
  void set_inputs(const Stream& stream, const LayerInputs& inputs) const;

  Buffer x, topk_ids, topk_weights, y;
};

// The ends of one call's stages, as events on its stream.
class StageClock {
 public:
  explicit StageClock(const Stream& stream);
  // Everything launched since the mark before, or since the clock was made, is this stage.
  void mark(const char* stage);
  // Waits for the last mark.
  void add_to(std::map<std::string, double>& seconds) const;

 private:
  const Stream* stream_;
  std::deque<Event> events_;  // one more than stages
  std::vector<const char*> stages_;
};

class Calls {
 public:
  // Puts the launches of one call on the stream.
  using LaunchCall = std::function<void(std::int64_t call, const RunRequest& request)>;

  // `flush` is larger than the L2 cache; both outlive this. Graphs of about `longest_graph` calls.
  Calls(const Stream& stream, const Buffer& flush, std::size_t slots, std::size_t weight_sets,
        std::int64_t longest_graph);

  // Total seconds of the request's calls by the device's clock.
  double run(const RunRequest& request, const LaunchCall& launch);
  // Runnable::stage_seconds: over a turn of slots and weight sets, eight calls at least.
  using LaunchStages =
      std::function<void(std::int64_t call, const RunRequest& request, StageClock& clock)>;
  std::map<std::string, double> stage_seconds(const RunRequest& request,
                                              const LaunchStages& launch) const;
  // What was captured no longer holds.
  void forget_graphs() { graphs_.clear(); }

 private:
  double timed(const std::function<void()>& work) const;
  double run_cold(const RunRequest& request, const LaunchCall& launch);
  double run_graphs(const RunRequest& request, const LaunchCall& launch);
  const Graph& graph(std::int64_t first, std::int64_t calls, const RunRequest& request,
                     const LaunchCall& launch);

  const Stream* stream_;
  const Buffer* flush_;
  std::int64_t turn_;   // calls after which slots and weight sets begin anew
  std::int64_t whole_;  // calls of a graph that is launched again and again
  // By first call, calls, whether caches are hot, first weight set.
  std::map<std::tuple<std::int64_t, std::int64_t, bool, std::int64_t>, Graph> graphs_;
  Event begin_, end_;
};

}  // namespace moegauge::cuda
