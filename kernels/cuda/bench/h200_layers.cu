// Fused layers on one GPU: check against fp64, then time. Protocol: a CUDA graph of
// 8 calls (4 for M >= 2048), each with its own routing and activations, rotating
// over 4 weight sets; median of the event-timed replays, per call.
//
//   h200_layers --layers qwen3-30b-a3b --tokens 1,16,64 [--variants t16s6-split,..]
//     [--routing uniform,zipf] [--replays 50] [--check-tokens 512] [--no-time]
//     [--stages] [--exact] [--trace] [--out FILE]
// --stages also times prepare alone and all but combine; --exact uses inputs whose
// sums are exact; --trace prints the stamps of a -DMOE_TRACE build.
#include <algorithm>
#include <cstring>
#include <memory>
#include <sstream>

#include "kernels/cuda/bench/workspace.h"

namespace bench {
namespace {

struct Options {
  std::vector<std::string> layers, variants, routings{"uniform"};
  std::vector<int> tokens{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};
  int replays = 50, check_tokens = 512;
  bool time = true, stages = false, exact = false, trace = false;
  std::string out;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (key == "--layers") o.layers = split(value());
    else if (key == "--variants") o.variants = split(value());
    else if (key == "--routing") o.routings = split(value());
    else if (key == "--replays") o.replays = std::stoi(value());
    else if (key == "--check-tokens") o.check_tokens = std::stoi(value());
    else if (key == "--no-time") o.time = false;
    else if (key == "--stages") o.stages = true;
    else if (key == "--exact") o.exact = true;
    else if (key == "--trace") o.trace = true;
    else if (key == "--out") o.out = value();
    else if (key == "--tokens") {
      o.tokens.clear();
      for (auto& t : split(value())) o.tokens.push_back(std::stoi(t));
    } else {
      std::fprintf(stderr, "unknown option %s\n", key.c_str());
      std::exit(2);
    }
  }
  return o;
}

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return list.empty() || std::find(list.begin(), list.end(), item) != list.end();
}

struct Timing {
  double median = 0, p10 = 0, p90 = 0, min = 0;
};

// Per-call microseconds of `replays` graph replays.
Timing time_calls(const Variant& v, const std::vector<moe::LayerArgs>& calls, int blocks, int replays, int upto) {
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (auto& args : calls) v.launch(args, stream, blocks, upto);
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; ++i) CUDA_CHECK(cudaGraphLaunch(exec, stream));
  std::vector<cudaEvent_t> events(2 * replays);
  for (auto& e : events) CUDA_CHECK(cudaEventCreate(&e));
  for (int i = 0; i < replays; ++i) {
    CUDA_CHECK(cudaEventRecord(events[2 * i], stream));
    CUDA_CHECK(cudaGraphLaunch(exec, stream));
    CUDA_CHECK(cudaEventRecord(events[2 * i + 1], stream));
  }
  CUDA_CHECK(cudaStreamSynchronize(stream));
  std::vector<double> us;
  for (int i = 0; i < replays; ++i) {
    float ms = 0;
    CUDA_CHECK(cudaEventElapsedTime(&ms, events[2 * i], events[2 * i + 1]));
    us.push_back(ms * 1000.0 / double(calls.size()));
  }
  if (std::getenv("SHOW_REPLAYS"))
    for (size_t i = 0; i < us.size(); ++i) std::printf("%s%.1f%s", i == 0 ? "    replays " : " ", us[i], i + 1 == us.size() ? "\n" : "");
  std::sort(us.begin(), us.end());
  for (auto& e : events) CUDA_CHECK(cudaEventDestroy(e));
  CUDA_CHECK(cudaGraphExecDestroy(exec));
  CUDA_CHECK(cudaGraphDestroy(graph));
  CUDA_CHECK(cudaStreamDestroy(stream));
  auto at = [&](double q) { return us[std::min(us.size() - 1, size_t(q * double(us.size())))]; };
  return {(us[(us.size() - 1) / 2] + us[us.size() / 2]) / 2, at(0.1), at(0.9), us[0]};
}

struct Limits {
  double relative, worst;
};
// On random data Hopper's FP8 products are themselves aligned and cut to about 14
// bits inside an instruction; that flips E4M3 roundings of h now and then (0.06 of
// an element each), so the layer's error is ten times its first GEMM's. On inputs
// whose sums are exact in 14 bits the same kernels must meet the tight limit.
Limits limits(const Layer& l, const Variant& v, bool exact) {
  if (!l.fp8()) return {0.003, 0.01};
  if (!v.promote) return {0.02, 0.06};
  return exact ? Limits{0.002, 0.01} : Limits{0.01, 0.05};
}

bool is_ok(const Error& e, const Limits& l) { return e.non_finite == 0 && e.relative_l2 <= l.relative && e.worst_token <= l.worst; }

// The configuration taken when nothing has been tuned, by rows an expert. A narrow
// tile must hold nearly every expert's rows, or weights are read twice.
std::string default_variant(const Layer& l, int tokens) {
  const double rows = double(tokens) * l.top_k / l.experts_global;
  if (l.int_bits() != 0)
    return rows <= 5 ? "t8s8-split-dealt" : rows <= 9 ? "t16s8-split-dealt" : rows <= 18 ? "t24s7-split-dealt"
           : rows <= 40 ? "t48s5-split-dealt" : rows <= 128 ? "t64s5-split-dealt" : "t96s3-turn";
  if (l.scheme == moe::Scheme::half)
    return rows <= 2 ? "t8s4-split-reduced" : rows <= 8 ? "t16s4-split-reduced" : rows <= 18 ? "t32s4-split-dealt-reduced"
           : rows <= 40 ? "t64s4-split-dealt-reduced" : rows <= 80 ? "t96s4-turn-reduced" : "t128s4-pairs-reduced";
  if (l.scheme == moe::Scheme::fp8_ptpc)
    return rows <= 2 ? "t8s4-split-dealt2" : rows <= 8 ? "t16s4-split-dealt2" : rows <= 18 ? "t32s4-split-dealt2"
           : rows <= 48 ? "t64s4-split-dealt2" : rows <= 80 ? "t80s4-turn" : rows <= 160 ? "t80s4-pairs" : rows <= 320 ? "t96s4-pairs" : "t128s4-pairs-reduced";
  return rows <= 2 ? "t8s4-split-dealt2" : rows <= 8 ? "t16s4-split-dealt2" : rows <= 20 ? "t32s4-split-dealt2"
         : rows <= 40 ? "t48s4-split-dealt2" : "t128s4-rows";
}

// Local pairs of a call, and distinct local experts touched.
std::pair<long long, int> touched(const Layer& l, const Call& c) {
  std::vector<char> seen(l.experts_local, 0);
  long long pairs = 0;
  for (int id : c.host_ids)
    if (id >= 0 && id < l.experts_local) ++pairs, seen[id] = 1;
  return {pairs, int(std::count(seen.begin(), seen.end(), 1))};
}

class Bench {
 public:
  explicit Bench(Options o) : options_(std::move(o)) {
    add_qwen3(layers_, variants_);
    add_deepseek(layers_, variants_);
    add_scout(layers_, variants_);
    add_mixtral(layers_, variants_);
    add_mixtral_int(layers_, variants_);
    add_small(layers_, variants_);
    add_small_int(layers_, variants_);
    cudaDeviceProp prop;
    CUDA_CHECK(cudaGetDeviceProperties(&prop, 0));
    blocks_ = prop.multiProcessorCount;
    device_ = prop.name;
  }

  int run() {
    for (auto& l : layers_) {
      if (!options_.layers.empty() && !contains(options_.layers, l.name)) continue;
      if (options_.layers.empty() && l.name.rfind("small", 0) == 0) continue;
      run_layer(l);
    }
    write();
    return failures_ == 0 ? 0 : 1;
  }

 private:
  void run_layer(const Layer& l) {
    std::vector<Weights> weights;
    for (int s = 0; s < (options_.time ? 4 : 1); ++s) weights.push_back(make_weights(l, 1000 * s + 17, options_.exact));
    int* map = make_expert_map(l);
    const int most = *std::max_element(options_.tokens.begin(), options_.tokens.end());
    {
      Workspace space(l, most, blocks_, 256);
      for (auto& routing : options_.routings)
        for (int m : options_.tokens) run_point(l, weights, map, space, routing, m);
    }
    for (auto& w : weights) free_weights(w);
    if (map) CUDA_CHECK(cudaFree(map));
  }

  // Widths worth trying: from about a quarter of the mean rows an expert to far above.
  bool candidate(const Layer& l, const Variant& v, int tokens) const {
    if (v.layer != l.name) return false;
    if (!options_.variants.empty()) return contains(options_.variants, v.name());
    const double mean = double(tokens) * l.top_k / l.experts_global;
    const bool large = mean >= 64;
    if (l.name.rfind("small", 0) == 0) return true;
    if (v.token_rows) return mean >= 24;
    return large ? v.token_tile >= 64 : v.token_tile >= mean && v.token_tile <= std::max(16.0, mean * 3);
  }

  void run_point(const Layer& l, const std::vector<Weights>& weights, const int* map, Workspace& space,
                 const std::string& routing, int tokens) {
    const int count = !options_.time ? 1 : tokens >= 2048 ? 4 : 8;
    std::vector<Call> calls;
    for (int i = 0; i < count; ++i) calls.push_back(make_call(l, tokens, routing, 7919ull * tokens + i, options_.exact));
    const bool checked = tokens <= options_.check_tokens;
    double* reference = checked ? make_reference(l, weights[0], calls[0], map) : nullptr;
    double distinct = 0, pairs = 0;
    for (auto& c : calls) {
      const auto [p, d] = touched(l, c);
      pairs += double(p) / count, distinct += double(d) / count;
    }
    for (auto& v : variants_)
      if (candidate(l, v, tokens)) run_variant(l, v, weights, map, space, routing, calls, reference, pairs, distinct);
    if (reference) CUDA_CHECK(cudaFree(reference));
    for (auto& c : calls) free_call(c);
  }

  void run_variant(const Layer& l, const Variant& v, const std::vector<Weights>& weights, const int* map, Workspace& space,
                   const std::string& routing, std::vector<Call>& calls, const double* reference, double pairs,
                   double distinct) {
    v.setup();
    std::vector<moe::LayerArgs> args;
    for (size_t i = 0; i < calls.size(); ++i) args.push_back(space.bind(weights[i % weights.size()], calls[i], map, v));
    const size_t y_bytes = size_t(calls[0].tokens) * l.hidden * 2;
    auto checked_run = [&] {
      space.poison();
      CUDA_CHECK(cudaMemset(calls[0].y, 0xff, y_bytes));
      v.launch(args[0], nullptr, blocks_, 3);
      CUDA_CHECK(cudaDeviceSynchronize());
      if (options_.trace && !options_.time) print_trace(args[0]);
      return compare_output(l, calls[0], reference);
    };
    Error before, after;
    bool ok = true;
    if (reference) {
      before = checked_run();
      ok = is_ok(before, limits(l, v, options_.exact));
    }
    Timing t, t1, t2;
    if (options_.time && ok) {
      for (auto& c : calls) CUDA_CHECK(cudaMemset(c.y, 0xff, y_bytes));
      t = time_calls(v, args, blocks_, options_.replays, 3);
      if (options_.trace) print_trace(args.back());
      // After timing: the last replay's first output is still right.
      if (reference) {
        after = compare_output(l, calls[0], reference);
        ok = is_ok(after, limits(l, v, options_.exact));
      }
      if (options_.stages) {
        t1 = time_calls(v, args, blocks_, options_.replays, 1);
        t2 = time_calls(v, args, blocks_, options_.replays, 2);
      }
    }
    if (!ok) ++failures_;
    char line[1024];
    std::snprintf(line, sizeof line,
                  "{\"layer\": \"%s\", \"routing\": \"%s\", \"tokens\": %d, \"variant\": \"%s\", \"ok\": %s, \"median_us\": %.2f, "
                  "\"default\": %s, \"p10_us\": %.2f, \"p90_us\": %.2f, \"min_us\": %.2f, \"prepare_us\": %.2f, \"without_combine_us\": %.2f, "
                  "\"checked\": %s, \"relative_l2\": %.3g, \"worst_token\": %.3g, \"non_finite\": %lld, "
                  "\"relative_l2_after\": %.3g, \"worst_token_after\": %.3g, \"local_pairs\": %.1f, \"distinct_experts\": %.2f}",
                  l.name.c_str(), routing.c_str(), calls[0].tokens, v.name().c_str(), ok ? "true" : "false", t.median,
                  v.name() == default_variant(l, calls[0].tokens) ? "true" : "false", t.p10,
                  t.p90, t.min, t1.median, t2.median, reference ? "true" : "false", before.relative_l2, before.worst_token,
                  before.non_finite, after.relative_l2, after.worst_token, pairs, distinct);
    records_.push_back(line);
    std::printf("%-14s %-8s M=%-5d %-18s %9.1f us  [%.1f %.1f] stages %.1f %.1f  err %.2e worst %.2e bad %lld%s\n", l.name.c_str(),
                routing.c_str(), calls[0].tokens, v.name().c_str(), t.median, t.p10, t.p90, t1.median, t2.median,
                before.relative_l2, before.worst_token, before.non_finite, ok ? "" : "  WRONG");
    std::fflush(stdout);
  }

  // Median and extremes over blocks of each stamp, microseconds after the earliest.
  void print_trace(const moe::LayerArgs& args) const {
    std::vector<unsigned long long> t(size_t(blocks_) * 16);
    CUDA_CHECK(cudaMemcpy(t.data(), args.trace, t.size() * 8, cudaMemcpyDeviceToHost));
    unsigned long long zero = ~0ull;
    for (int b = 0; b < blocks_; ++b) zero = std::min(zero, t[b * 16]);
    const char* names[12] = {"start", "weights", "dependency", "rows ready", "gate/up begins", "gate/up multiplied",
                             "gate/up joined", "gate/up finished", "down begins", "down multiplied", "down joined", "down finished"};
    for (int s = 0; s < 12; ++s) {
      std::vector<double> us;
      for (int b = 0; b < blocks_; ++b)
        if (t[b * 16 + s] != ~0ull) us.push_back(double(t[b * 16 + s] - zero) / 1000.0);
      if (us.empty()) continue;
      std::sort(us.begin(), us.end());
      std::printf("    %-20s %7.2f %7.2f %7.2f  (%zu blocks)\n", names[s], us[0], us[us.size() / 2], us.back(), us.size());
    }
  }

  void write() const {
    if (options_.out.empty()) return;
    FILE* f = std::fopen(options_.out.c_str(), "w");
    if (!f) {
      std::fprintf(stderr, "cannot write %s\n", options_.out.c_str());
      std::exit(2);
    }
    std::fprintf(f, "{\"device\": \"%s\", \"multiprocessors\": %d, \"replays\": %d, \"rows\": [\n", device_.c_str(), blocks_, options_.replays);
    for (size_t i = 0; i < records_.size(); ++i) std::fprintf(f, "%s%s\n", records_[i].c_str(), i + 1 < records_.size() ? "," : "");
    std::fprintf(f, "]}\n");
    std::fclose(f);
  }

  Options options_;
  std::vector<Layer> layers_;
  std::vector<Variant> variants_;
  std::vector<std::string> records_;
  std::string device_;
  int blocks_ = 132, failures_ = 0;
};

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::Bench(bench::parse(argc, argv)).run(); }
