#include "reference/oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "reference/activation.h"
#include "reference/base/integers.h"
#include "reference/base/thread_pool.h"
#include "reference/dtype.h"
#include "reference/expert_matrix.h"
#include "reference/gemm/gemm.h"
#include "reference/oracle_checks.h"

namespace moegauge {
namespace {

// Fixed, so that the same sums are formed in the same order for any number of threads.
constexpr std::int64_t kIntermediateBlock = 64;  // columns of h per task, 2 x 64 rows of w13
constexpr std::int64_t kHiddenBlock = 128;       // columns of y per task, as many rows of w2
// Of experts held at a time, in canonical storage and with their rows of x.
constexpr std::int64_t kBatchBytes = std::int64_t{1} << 29;
constexpr std::int64_t kGatheredBytes = 2 * sizeof(double);  // per element of x

// A token's work at one expert of this rank. Pairs are sorted by expert, then by position, and a
// pair's place in that order is its row in everything of width N.
struct Pair {
  std::int64_t token = 0;
  std::int32_t expert = 0;  // local
  double weight = 0;
};

// Consecutive pairs of one expert.
struct Run {
  std::int32_t expert = 0;
  std::int64_t begin = 0, end = 0;
  std::int64_t rows() const { return end - begin; }
};

struct ResidentExpert {
  Run run;
  ExpertMatrix weights;
  std::vector<float> bias;                        // empty without
  std::vector<double> emulated_x, unquantized_x;  // first GEMM only: this run's rows of x
};

// A thread's own buffers, grown once.
struct Scratch {
  std::vector<float> original;
  std::vector<double> weights, emulated, unquantized, magnitude;
  static double* reserve(std::vector<double>& buffer, std::int64_t n) {
    if (buffer.size() < index(n)) buffer.resize(index(n));
    return buffer.data();
  }
};

class Computation {
 public:
  Computation(std::int64_t batch_bytes, const Layer& layer, const Scheme& scheme,
              const Numerics& numerics, const ExpertSource& experts, const LayerInputs& inputs,
              int threads)
      : batch_bytes_(batch_bytes),
        layer_(layer),
        scheme_(scheme),
        numerics_(numerics),
        experts_(experts),
        inputs_(inputs),
        gemm_(Gemm::best()),
        pool_(threads),
        scratch_(index(pool_.threads())),
        k_(layer.hidden_size),
        n_(layer.intermediate_size) {}

  Truth run() {
    truth_.tokens = inputs_.tokens;
    truth_.hidden_size = k_;
    const std::size_t size = index(inputs_.tokens * k_);
    truth_.emulated.assign(size, 0.0);
    truth_.unquantized.assign(size, 0.0);
    truth_.magnitude.assign(size, 0.0);
    collect_pairs();
    if (pairs_.empty()) return std::move(truth_);
    emulate_x();
    act_out_.resize(pairs_.size() * index(n_));
    unquantized_h_.resize(act_out_.size());
    for_each_batch(Role::w13, [&](std::span<ResidentExpert> batch) { first_gemm(batch); });
    emulate_h();
    for_each_batch(Role::w2, [&](std::span<ResidentExpert> batch) { second_gemm(batch); });
    finish();
    return std::move(truth_);
  }

 private:
  void collect_pairs();
  void emulate_x();
  void emulate_h();
  void emulate(Role role, std::span<const float> in, std::int64_t cols, std::span<double> out);
  template <typename Fn>
  void for_each_batch(Role role, const Fn& fn);
  ResidentExpert make_resident(const Run& run, Role role) const;
  void gather_x(ResidentExpert& expert) const;
  void first_gemm(std::span<const ResidentExpert> batch);
  void first_gemm_block(const ResidentExpert& expert, std::int64_t block, Scratch& scratch);
  void activate_pairs(const ResidentExpert& expert, std::int64_t column, std::int64_t columns,
                      const Scratch& scratch);
  void second_gemm(std::span<const ResidentExpert> batch);
  void second_gemm_block(const ResidentExpert& expert, std::int64_t block, Scratch& scratch);
  void add_pairs(const ResidentExpert& expert, std::int64_t row, std::int64_t rows,
                 const Scratch& scratch);
  void finish();

  bool weight_at_x() const {
    return layer_.router_weight_on_input && numerics_.weight_on_input == WeightOnInput::x;
  }
  void round_weights(std::span<double> weights) const {
    if (numerics_.weights == Precision::fp32) return;
    for (double& w : weights) w = round_to(layer_.dtype, w);
  }
  double round(Precision precision, double value) const {
    return precision == Precision::fp32 ? static_cast<double>(static_cast<float>(value))
                                        : round_to(layer_.dtype, value);
  }

  const std::int64_t batch_bytes_;
  const Layer& layer_;
  const Scheme& scheme_;
  const Numerics& numerics_;
  const ExpertSource& experts_;
  const LayerInputs& inputs_;
  const Gemm& gemm_;
  ThreadPool pool_;
  std::vector<Scratch> scratch_;  // by thread
  const std::int64_t k_, n_;

  std::vector<Pair> pairs_;
  std::vector<Run> runs_;
  std::vector<double> x_;       // [M, K], as the first GEMM sees it
  std::vector<float> act_out_;  // [pairs, N], rounded as declared, before quantisation
  // [pairs, N]: as the second GEMM sees it, its magnitude, and unrounded.
  std::vector<double> h_, h_magnitude_, unquantized_h_;
  Truth truth_;
};

void Computation::collect_pairs() {
  for (std::int64_t i = 0; i < inputs_.tokens * layer_.top_k; ++i) {
    const std::int32_t expert = layer_.local_id(inputs_.topk_ids[index(i)]);
    if (expert < 0) continue;
    pairs_.push_back({i / layer_.top_k, expert, inputs_.topk_weights[index(i)]});
  }
  std::ranges::stable_sort(pairs_, {}, &Pair::expert);
  for (std::int64_t i = 0; i < std::ssize(pairs_); ++i) {
    const std::int32_t expert = pairs_[index(i)].expert;
    if (runs_.empty() || runs_.back().expert != expert) runs_.push_back({expert, i, i});
    runs_.back().end = i + 1;
  }
}

// Of all tokens, also those of other ranks: a scale per tensor depends on them.
void Computation::emulate_x() {
  std::vector<float> x(inputs_.x.size());
  for (std::int64_t token = 0; token < inputs_.tokens; ++token) {
    for (std::int64_t i = token * k_; i < (token + 1) * k_; ++i) {
      double value = to_float(layer_.dtype, inputs_.x[index(i)]);
      // top_k is 1 where the weight is on the input, so a token has one weight.
      if (weight_at_x()) value = round_to(layer_.dtype, value * inputs_.topk_weights[index(token)]);
      x[index(i)] = static_cast<float>(value);
    }
  }
  x_.resize(x.size());
  emulate(Role::w13, x, k_, x_);
}

void Computation::emulate_h() {
  h_.resize(act_out_.size());
  emulate(Role::w2, act_out_, n_, h_);
  act_out_ = {};
  h_magnitude_.resize(h_.size());
  std::ranges::transform(h_, h_magnitude_.begin(), [](double h) { return std::fabs(h); });
}

void Computation::emulate(Role role, std::span<const float> in, std::int64_t cols,
                          std::span<double> out) {
  const std::int64_t rows = static_cast<std::int64_t>(in.size()) / cols;
  const OperandTraits traits = scheme_.traits().activation;
  const bool per_tensor = traits.scale != ScaleKind::none && traits.unit.rows == 0;
  const std::int64_t rows_per_call = per_tensor ? rows : 1;
  const float scale = traits.static_scale ? experts_.activation_scale(role) : 0.0f;
  pool_.parallel_for(rows / rows_per_call, [&](std::int64_t i) {
    const std::size_t begin = index(i * rows_per_call * cols), count = index(rows_per_call * cols);
    scheme_.emulate_activation(
        in.subspan(begin, count),
        {.rows = rows_per_call, .cols = cols, .dtype = layer_.dtype, .static_scale = scale},
        out.subspan(begin, count));
  });
}

// fn(experts made resident), as many at a time as fit, in order.
template <typename Fn>
void Computation::for_each_batch(Role role, const Fn& fn) {
  const MatrixShape shape = weight_shape(layer_, role);
  const auto weight_bytes = static_cast<std::int64_t>(scheme_.weight_bytes(shape).total());
  for (std::int64_t begin = 0, end = 0; begin < std::ssize(runs_); begin = end) {
    for (std::int64_t bytes = 0; end < std::ssize(runs_); ++end) {
      bytes += weight_bytes + runs_[index(end)].rows() * k_ * kGatheredBytes;
      if (end > begin && bytes > batch_bytes_) break;
    }
    std::vector<std::optional<ResidentExpert>> loading(index(end - begin));
    pool_.parallel_for(end - begin, [&](std::int64_t i) {
      loading[index(i)].emplace(make_resident(runs_[index(begin + i)], role));
    });
    std::vector<ResidentExpert> batch;
    batch.reserve(loading.size());
    for (auto& expert : loading) batch.push_back(*std::move(expert));
    fn(std::span(batch));
  }
}

ResidentExpert Computation::make_resident(const Run& run, Role role) const {
  ResidentExpert expert = {
      .run = run,
      .weights = ExpertMatrix(scheme_, experts_, run.expert, weight_shape(layer_, role)),
      .bias = {},
      .emulated_x = {},
      .unquantized_x = {}};
  if (layer_.expert_bias && (role == Role::w13 || layer_.adds_w2_bias)) {
    expert.bias = experts_.bias(run.expert, role);
    check_bias(layer_, role, run.expert, expert.bias.size());
  }
  if (role == Role::w13) gather_x(expert);
  return expert;
}

void Computation::gather_x(ResidentExpert& expert) const {
  expert.emulated_x.reserve(index(expert.run.rows() * k_));
  expert.unquantized_x.reserve(index(expert.run.rows() * k_));
  for (std::int64_t p = expert.run.begin; p < expert.run.end; ++p) {
    const std::int64_t token = pairs_[index(p)].token;
    const auto first = x_.begin() + token * k_;
    expert.emulated_x.insert(expert.emulated_x.end(), first, first + k_);
    for (const std::uint16_t bits : inputs_.x.subspan(index(token * k_), index(k_))) {
      expert.unquantized_x.push_back(to_float(layer_.dtype, bits));
    }
  }
}

void Computation::first_gemm(std::span<const ResidentExpert> batch) {
  const std::int64_t blocks = ceil_div(n_, kIntermediateBlock);
  pool_.parallel_for(std::ssize(batch) * blocks, [&](std::int64_t i, int thread) {
    first_gemm_block(batch[index(i / blocks)], i % blocks, scratch_[index(thread)]);
  });
}

// Columns [64 block, ...) of h: their gate rows and their up rows of w13.
void Computation::first_gemm_block(const ResidentExpert& expert, std::int64_t block,
                                   Scratch& scratch) {
  const std::int64_t begin = block * kIntermediateBlock;
  const std::int64_t end = std::min(begin + kIntermediateBlock, n_);
  const std::int64_t rows = expert.run.rows(), width = 2 * (end - begin);
  std::vector<RowRange> parts = {{begin, end}, {n_ + begin, n_ + end}};
  if (layer_.gate_up_order == GateUpOrder::interleaved) parts = {{2 * begin, 2 * end}};

  double* const weights = expert.weights.emulated(parts, scratch.weights);
  round_weights({weights, index(width * k_)});
  const View emulated = {Scratch::reserve(scratch.emulated, rows * width), rows, width, width};
  const View unquantized = {Scratch::reserve(scratch.unquantized, rows * width), rows, width,
                            width};
  gemm_.multiply({expert.emulated_x.data(), rows, k_, k_}, {weights, width, k_, k_}, emulated);
  gemm_.multiply({expert.unquantized_x.data(), rows, k_, k_},
                 {expert.weights.original(parts, scratch.original, scratch.weights), width, k_, k_},
                 unquantized);
  activate_pairs(expert, begin, end - begin, scratch);
}

void Computation::activate_pairs(const ResidentExpert& expert, std::int64_t column,
                                 std::int64_t columns, const Scratch& scratch) {
  const bool interleaved = layer_.gate_up_order == GateUpOrder::interleaved;
  const bool weighted = layer_.router_weight_on_input;
  const auto bias = [&](std::int64_t row) {
    return expert.bias.empty() ? 0.0 : static_cast<double>(expert.bias[index(row)]);
  };
  for (std::int64_t p = 0; p < expert.run.rows(); ++p) {
    const double weight = weighted ? pairs_[index(expert.run.begin + p)].weight : 1.0;
    const double weight_after_gemm = weight_at_x() ? 1.0 : weight;
    const double* const emulated = &scratch.emulated[index(p * 2 * columns)];
    const double* const unquantized = &scratch.unquantized[index(p * 2 * columns)];
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t gate = interleaved ? 2 * c : c, up = interleaved ? 2 * c + 1 : columns + c;
      const std::int64_t n = column + c;
      const double gate_bias = bias(interleaved ? 2 * n : n);
      const double up_bias = bias(interleaved ? 2 * n + 1 : n_ + n);
      const auto rounded = [&](double sum, double b) {
        return round(numerics_.gemm1_out, (sum + b) * weight_after_gemm);
      };
      const double h = activate(layer_.activation, rounded(emulated[gate], gate_bias),
                                rounded(emulated[up], up_bias));
      const std::size_t at = index((expert.run.begin + p) * n_ + n);
      act_out_[at] = static_cast<float>(round(numerics_.act_out, h));
      unquantized_h_[at] = activate(layer_.activation, (unquantized[gate] + gate_bias) * weight,
                                    (unquantized[up] + up_bias) * weight);
    }
  }
}

// A task owns columns of y and adds the experts of the batch in order.
void Computation::second_gemm(std::span<const ResidentExpert> batch) {
  pool_.parallel_for(ceil_div(k_, kHiddenBlock), [&](std::int64_t block, int thread) {
    for (const ResidentExpert& expert : batch) {
      second_gemm_block(expert, block, scratch_[index(thread)]);
    }
  });
}

void Computation::second_gemm_block(const ResidentExpert& expert, std::int64_t block,
                                    Scratch& scratch) {
  const std::int64_t begin = block * kHiddenBlock;
  const std::int64_t width = std::min(kHiddenBlock, k_ - begin), rows = expert.run.rows();
  const RowRange part = {begin, begin + width};
  const std::int64_t first = expert.run.begin * n_;
  const auto multiply = [&](const std::vector<double>& h, const double* weights,
                            std::vector<double>& out) {
    gemm_.multiply({h.data() + first, rows, n_, n_}, {weights, width, n_, n_},
                   {Scratch::reserve(out, rows * width), rows, width, width});
  };
  double* const emulated = expert.weights.emulated({&part, 1}, scratch.weights);
  round_weights({emulated, index(width * n_)});
  multiply(h_, emulated, scratch.emulated);
  std::transform(emulated, emulated + width * n_, emulated, [](double w) { return std::fabs(w); });
  multiply(h_magnitude_, emulated, scratch.magnitude);
  multiply(unquantized_h_, expert.weights.original({&part, 1}, scratch.original, scratch.weights),
           scratch.unquantized);
  add_pairs(expert, begin, width, scratch);
}

void Computation::add_pairs(const ResidentExpert& expert, std::int64_t column, std::int64_t columns,
                            const Scratch& scratch) {
  for (std::int64_t p = 0; p < expert.run.rows(); ++p) {
    const Pair& pair = pairs_[index(expert.run.begin + p)];
    const double weight = layer_.router_weight_on_input ? 1.0 : pair.weight;
    for (std::int64_t c = 0; c < columns; ++c) {
      const double bias = expert.bias.empty() ? 0.0 : expert.bias[index(column + c)];
      const std::size_t from = index(p * columns + c), to = index(pair.token * k_ + column + c);
      // fp32 is no rounding point of its own here: the sum goes on in registers.
      const double sum = numerics_.gemm2_out == Precision::fp32
                             ? scratch.emulated[from]
                             : round(numerics_.gemm2_out, scratch.emulated[from]);
      truth_.emulated[to] += round(numerics_.pair_out, (sum + bias) * weight);
      truth_.unquantized[to] += (scratch.unquantized[from] + bias) * weight;
      truth_.magnitude[to] += (scratch.magnitude[from] + std::fabs(bias)) * std::fabs(weight);
    }
  }
}

void Computation::finish() {
  std::vector<bool> served(index(inputs_.tokens));
  truth_.not_compared.resize(index(inputs_.tokens));
  for (const Pair& pair : pairs_) served[index(pair.token)] = true;
  for (std::int64_t token = 0; token < inputs_.tokens; ++token) {
    bool nan = false, infinite = false;
    for (const std::uint16_t bits : inputs_.x.subspan(index(token * k_), index(k_))) {
      const float value = to_float(layer_.dtype, bits);
      nan |= std::isnan(value);
      infinite |= std::isinf(value);
    }
    const auto row = std::span(truth_.emulated).subspan(index(token * k_), index(k_));
    for (double& y : row) y = round_to(layer_.dtype, y);
    // By rule and not by arithmetic: integer schemes have no NaN, saturating ones no infinity.
    if (!served[index(token)] || !(nan || infinite)) continue;
    const double mark =
        nan ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    truth_.not_compared[index(token)] = nan ? 0 : 1;
    std::ranges::fill(row, mark);
    std::ranges::fill(std::span(truth_.unquantized).subspan(index(token * k_), index(k_)), mark);
  }
}

}  // namespace

Truth compute_truth_within(std::int64_t batch_bytes, const Layer& layer, const Scheme& scheme,
                           const Numerics& numerics, const ExpertSource& experts,
                           const LayerInputs& inputs, int threads) {
  check_truth_inputs(layer, scheme, experts, inputs);
  return Computation(batch_bytes, layer, scheme, numerics, experts, inputs, threads).run();
}

Truth compute_truth(const Layer& layer, const Scheme& scheme, const Numerics& numerics,
                    const ExpertSource& experts, const LayerInputs& inputs, int threads) {
  return compute_truth_within(kBatchBytes, layer, scheme, numerics, experts, inputs, threads);
}

}  // namespace moegauge
