#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "reference/inputs/exact.h"
#include "reference/inputs/spread.h"

namespace moegauge {
namespace {

enum class PairKind : std::uint8_t { anchor, constant, gate, up };

PairKind kind_at(std::int64_t position) {
  if (position < 2) return position == 0 ? PairKind::anchor : PairKind::constant;
  return position % 2 == 0 ? PairKind::gate : PairKind::up;
}

// The sign of constant and gate pairs along K; the same for every seed, so that x and weights need
// not be made from the same one.
std::vector<int> pair_signs(const PairedAxis& k) {
  RandomWords words(RandomStream(0, Purpose::exact_pairs, 0));
  std::vector<int> signs(static_cast<std::size_t>(k.length / 2));
  for (int& sign : signs) sign = words.next() % 2 == 0 ? 1 : -1;
  return signs;
}

// A pair in which a weight row differs by `difference`, in weight units.
struct Live {
  std::int64_t pair = 0;
  int difference = 0;
};
using LivePairs = std::span<const Live>;

bool is_live(LivePairs live, std::int64_t pair) {
  return std::ranges::any_of(live, [pair](const Live& l) { return l.pair == pair; });
}

// A pair of the given kind in a random group that has room.
std::int64_t pick(const PairedAxis& k, PairKind kind, std::uint32_t group, std::uint32_t position) {
  const std::int64_t g = group % k.roomy_groups();
  const std::int64_t pairs = k.pairs_in(g);
  std::int64_t p = kind == PairKind::anchor ? 0 : 1;
  if (kind == PairKind::gate) p = 2 + 2 * (position % ((pairs - 1) / 2));
  if (kind == PairKind::up) p = 3 + 2 * (position % ((pairs - 2) / 2));
  return g * (k.group / 2) + p;
}

// What the gate and up rows of one pair along N are to compute.
struct NeuronPair {
  std::optional<Live> gate;
  std::array<Live, 2> up = {};
  std::size_t ups = 0;
  int gate_bias = 0, up_bias = 0;  // in units of P, of the first row; the second's up is opposite
  int bound = 0;                   // of |h| in units of 8 P^2
};

class Neurons {
 public:
  explicit Neurons(const ExactPlan& plan) : plan_(plan), signs_(pair_signs(plan.k)) {}

  NeuronPair at(std::uint64_t expert, std::int64_t pair) const {
    const RandomStream stream(plan_.seed, Purpose::w13_structure, expert);
    const auto a = stream.block(static_cast<std::uint32_t>(pair * 2));
    const auto b = stream.block(static_cast<std::uint32_t>(pair * 2 + 1));
    const std::int64_t position = pair % (plan_.n.group / 2);
    return position == 0 ? anchor(a, b) : ordinary(a, b, position == 1);
  }

 private:
  Live gate(PairKind kind, std::uint32_t group, std::uint32_t position) const {
    const std::int64_t pair = pick(plan_.k, kind, group, position);
    return {pair, signs_[static_cast<std::size_t>(pair)]};
  }

  NeuronPair anchor(const PhiloxCounter& a, const PhiloxCounter& b) const {
    NeuronPair n;
    if (plan_.biased)
      n.gate_bias = 8;
    else
      n.gate = gate(PairKind::constant, a[1], a[2]);
    n.up[0] = {pick(plan_.k, PairKind::anchor, a[3], 0), b[3] % 2 == 0 ? 1 : -1};
    n.ups = 1;
    n.bound = static_cast<int>(plan_.anchor);
    return n;
  }

  // |up| <= 2, 4 or 8 (and 1 more with a bias), gate 0, 8 or 16: |h| <= 2 |up|.
  NeuronPair ordinary(const PhiloxCounter& a, const PhiloxCounter& b, bool small) const {
    NeuronPair n;
    const int size = small ? 0 : static_cast<int>(a[0] % 3);
    const auto sign = [&](std::uint32_t bit) { return (b[3] >> bit) % 2 == 0 ? 1 : -1; };
    const bool closed = (a[0] >> 16) % 8 == 0;  // a gate at 0 for every token
    if (!closed) n.gate = gate(PairKind::gate, a[1], a[2]);
    const int step = size == 0 ? 1 : 2;
    n.up[n.ups++] = {pick(plan_.k, PairKind::up, a[3], b[0]), step * sign(0)};
    if (size == 2) {
      const Live second = {pick(plan_.k, PairKind::up, b[1], b[2]), step * sign(1)};
      if (second.pair != n.up[0].pair) n.up[n.ups++] = second;
    }
    if (plan_.biased) n.up_bias = sign(2);
    n.bound = 2 * (2 * step * static_cast<int>(n.ups) + (plan_.biased ? 1 : 0));
    return n;
  }

  const ExactPlan& plan_;
  std::vector<int> signs_;
};

// Fills one weight row: pairs of equal random elements, the anchors of each group, and the live
// pairs. `scale_of(column)` is the factor of the anchors of the unit there.
template <typename ScaleOf>
void fill_weights(const ExactPlan& plan, const PairedAxis& axis, LivePairs live, double unit,
                  RandomWords words, const ScaleOf& scale_of, std::span<float> out) {
  std::ranges::fill(out, 0.0f);
  const auto set = [&](std::int64_t pair, double first, double second) {
    out[static_cast<std::size_t>(2 * pair)] = static_cast<float>(first * unit);
    out[static_cast<std::size_t>(2 * pair + 1)] = static_cast<float>(second * unit);
  };
  for (std::int64_t g = 0; g < axis.groups(); ++g) {
    const std::int64_t pairs = axis.pairs_in(g), first = g * (axis.group / 2);
    if (pairs < 2) continue;
    std::uint32_t word = 0;
    for (std::int64_t p = 0; p < pairs; ++p) {
      word = words.next();
      const double e = (word % 2 == 0 ? 1 : -1) * (1 + static_cast<int>((word >> 1) % 2));
      set(first + p, e, e);
    }
    const auto free_from = [&](std::int64_t p, std::int64_t taken) {
      while (is_live(live, first + p % pairs) || p % pairs == taken) ++p;
      return p % pairs;
    };
    const std::int64_t high = free_from((word >> 2) % pairs, -1);
    const std::int64_t low = free_from((word >> 16) % pairs, high);
    const double scale = scale_of(g * axis.group);
    set(first + high, plan.highest * scale, plan.highest * scale);
    set(first + low, plan.lowest * scale, plan.lowest * scale);
  }
  for (const Live& l : live) {
    const std::uint32_t way = words.next() % 3;
    const int d = l.difference;
    if (way == 0)
      set(l.pair, d, 0);
    else if (way == 1 || d % 2 != 0)
      set(l.pair, 0, -d);
    else
      set(l.pair, d * 0.5, d * -0.5);
  }
}

// Words are drawn per row from a block of its own.
RandomWords row_words(const RandomStream& stream, std::int64_t row, std::int64_t cols) {
  const std::int64_t blocks = (cols / 2 + 8) / 4 + 1;  // one word a pair, a few for the live ones
  return RandomWords(stream, static_cast<std::uint32_t>(row * blocks));
}

class ExactX final : public Rows {
 public:
  explicit ExactX(const ExactPlan& plan) : plan_(plan), signs_(pair_signs(plan.k)) {}

  void fill(const RowId& id, std::span<float> out) const override {
    std::ranges::fill(out, 0.0f);
    RandomWords words =
        row_words(RandomStream(plan_.seed, Purpose::x, id.tensor), id.row, plan_.k.length);
    for (std::size_t pair = 0; pair < signs_.size(); ++pair) {
      const double v = plan_.x_unit * value(pair, words.next());
      out[2 * pair] = static_cast<float>(v);
      out[2 * pair + 1] = static_cast<float>(-v);
    }
  }
  double largest() const override { return plan_.anchor * plan_.x_unit; }

 private:
  double value(std::size_t pair, std::uint32_t word) const {
    const int sign = signs_[pair];
    switch (kind_at(static_cast<std::int64_t>(pair) % (plan_.k.group / 2))) {
      case PairKind::anchor:
        return word % 2 == 0 ? plan_.anchor : -plan_.anchor;
      case PairKind::constant:
        return 8 * sign;
      case PairKind::gate:
        return 8 * sign * static_cast<int>(word % 3);
      case PairKind::up:
        return static_cast<int>(word % 5) - 2;
    }
    return 0;
  }

  ExactPlan plan_;
  std::vector<int> signs_;
};

class ExactW13 final : public Rows {
 public:
  ExactW13(const ExactPlan& plan, const ScaleUnit& unit)
      : plan_(plan),
        neurons_(plan_),
        spread_(plan.seed, Purpose::w13_spread, unit, plan.k.length, 0, plan.spread) {}

  void fill(const RowId& id, std::span<float> out) const override {
    const std::int64_t n = id.row % plan_.n.length;
    std::vector<Live> live;
    if (n / 2 < plan_.n.length / 2) {  // else the odd row at the end, which has no partner
      const NeuronPair pair = neurons_.at(id.tensor, n / 2);
      if (id.row >= plan_.n.length) {
        live.assign(pair.up.begin(), pair.up.begin() + static_cast<std::ptrdiff_t>(pair.ups));
        for (Live& l : live) l.difference *= n % 2 == 0 ? 1 : -1;
      } else if (pair.gate) {
        live.push_back(*pair.gate);
      }
    }
    fill_weights(
        plan_, plan_.k, live, plan_.w13_unit,
        row_words(RandomStream(plan_.seed, Purpose::w13, id.tensor), id.row, plan_.k.length),
        [&](std::int64_t col) { return spread_.factor(id.tensor, id.stored, col); }, out);
  }
  double largest() const override {
    return std::ldexp(plan_.highest * plan_.w13_unit, plan_.spread);
  }

 private:
  ExactPlan plan_;
  Neurons neurons_;
  UnitSpread spread_;
};

class ExactW2 final : public Rows {
 public:
  ExactW2(const ExactPlan& plan, const ScaleUnit& unit)
      : plan_(plan),
        neurons_(plan_),
        spread_(plan.seed, Purpose::w2_spread, unit, plan.n.length, 0, plan.spread) {}

  void fill(const RowId& id, std::span<float> out) const override {
    fill_weights(
        plan_, plan_.n, live_pairs(id), plan_.w2_unit,
        row_words(RandomStream(plan_.seed, Purpose::w2, id.tensor), id.row, plan_.n.length),
        [&](std::int64_t col) { return spread_.factor(id.tensor, id.stored, col); }, out);
  }
  double largest() const override {
    return std::ldexp(plan_.highest * plan_.w2_unit, plan_.spread);
  }

 private:
  // Random pairs as long as their bounds leave the sum within the limit; at least one.
  std::vector<Live> live_pairs(const RowId& id) const {
    RandomWords words(RandomStream(plan_.seed, Purpose::w2_structure, id.tensor),
                      static_cast<std::uint32_t>(id.row * 3));
    std::vector<Live> live;
    int left = plan_.inner_limit;
    const auto add = [&](std::int64_t pair, std::uint32_t sign) {
      const int bound = neurons_.at(id.tensor, pair).bound;
      if (bound > left || is_live(live, pair)) return;
      live.push_back({pair, sign % 2 == 0 ? 1 : -1});
      left -= bound;
    };
    const std::int64_t per_group = plan_.n.group / 2;
    std::int64_t small = 0;
    for (int i = 0; i < 4; ++i) {
      const std::int64_t g = words.below(static_cast<std::uint32_t>(plan_.n.roomy_groups()));
      const std::uint32_t word = words.next();
      small = g * per_group + 1;  // the pair that is small by construction
      const auto here =
          std::ranges::count_if(live, [&](const Live& l) { return l.pair / per_group == g; });
      if (here < 2) add(g * per_group + 1 + (word >> 1) % (plan_.n.pairs_in(g) - 1), word);
    }
    if (live.empty()) add(small, words.next());
    return live;
  }

  ExactPlan plan_;
  Neurons neurons_;
  UnitSpread spread_;
};

}  // namespace

std::unique_ptr<Rows> exact_x(const ExactPlan& plan) { return std::make_unique<ExactX>(plan); }
std::unique_ptr<Rows> exact_w13(const ExactPlan& plan, const ScaleUnit& unit) {
  return std::make_unique<ExactW13>(plan, unit);
}
std::unique_ptr<Rows> exact_w2(const ExactPlan& plan, const ScaleUnit& unit) {
  return std::make_unique<ExactW2>(plan, unit);
}

std::vector<float> exact_w13_bias(const ExactPlan& plan, std::uint64_t expert) {
  const Neurons neurons(plan);
  const auto n = static_cast<std::size_t>(plan.n.length);
  std::vector<float> bias(2 * n, 0.0f);
  for (std::size_t pair = 0; pair < n / 2; ++pair) {
    const NeuronPair neuron = neurons.at(expert, static_cast<std::int64_t>(pair));
    const auto gate = static_cast<float>(neuron.gate_bias * plan.product_unit);
    const auto up = static_cast<float>(neuron.up_bias * plan.product_unit);
    bias[2 * pair] = bias[2 * pair + 1] = gate;
    bias[n + 2 * pair] = up;
    bias[n + 2 * pair + 1] = -up;
  }
  return bias;
}

std::vector<float> exact_w2_bias(const ExactPlan& plan, std::uint64_t expert) {
  RandomWords words(RandomStream(plan.seed, Purpose::w2_bias, expert));
  std::vector<float> bias(static_cast<std::size_t>(plan.k.length));
  for (float& b : bias) b = static_cast<float>(static_cast<int>(words.next() % 3) - 1);
  return bias;
}

}  // namespace moegauge
