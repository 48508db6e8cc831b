#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/base/input_error.h"
#include "reference/dtype.h"
#include "reference/inputs/exact.h"
#include "reference/inputs/rows.h"
#include "reference/inputs/spread.h"
#include "reference/random/value_table.h"

namespace moegauge {
namespace {

// Standard deviation of biases: of the order of h and y, not dominant.
constexpr double kBiasDeviation = 0.25;
// 2^8 between a unit and its neighbour's mean is far more than tells them apart.
constexpr int kLargestSpread = 8;
// |h| that a static scale of the second GEMM's activations is calibrated for, where inputs have
// deviation 1: products of two values near the end of the normal distribution's tails.
constexpr double kTypicalLargestH = 16;

std::vector<std::uint64_t> global_ids(const Layer& layer) {
  std::vector<std::uint64_t> ids(static_cast<std::size_t>(layer.local_experts()));
  for (std::int32_t e = 0; e < layer.experts; ++e) {
    const std::int32_t local = layer.local_id(e);
    if (local < 0) continue;
    if (local >= static_cast<std::int64_t>(ids.size())) {
      throw InputError("layer",
                       "expert_map names local expert " + std::to_string(local) + " of " +
                           std::to_string(ids.size()),
                       "local ids from 0 without gaps");
    }
    ids[static_cast<std::size_t>(local)] = static_cast<std::uint64_t>(e);
  }
  return ids;
}

// Without a scale, rows of 128 columns: any cut would do.
ScaleUnit resolved_unit(const OperandTraits& weight, const MatrixShape& shape) {
  if (weight.scale == ScaleKind::none) return {1, std::min<std::int64_t>(128, shape.cols)};
  return {unit_or_whole(weight.unit.rows, shape.rows), unit_or_whole(weight.unit.cols, shape.cols)};
}

// One of the two tensors of all experts.
struct Tensor {
  std::unique_ptr<Rows> rows;
  UnitSpread spread;  // multiplies rows; flat under `exact`, whose rows do it themselves
};

class GeneratedExperts final : public ExpertSource {
 public:
  GeneratedExperts(const Layer& layer, std::shared_ptr<const Scheme> scheme,
                   Distribution distribution, std::uint64_t seed, int unit_spread)
      : layer_(layer),
        scheme_(std::move(scheme)),
        traits_(scheme_->traits()),
        distribution_(distribution),
        seed_(seed),
        global_ids_(global_ids(layer)),
        plan_(plan(unit_spread)),
        w13_(tensor(Role::w13, unit_spread)),
        w2_(tensor(Role::w2, unit_spread)) {
    if (layer.expert_bias) bias_ = ValueTable::gaussian(kBiasDeviation, layer.dtype);
  }

  void quantized(std::int64_t local_expert, const Matrix& out) const override {
    // Kept from expert to expert: fresh pages would be a quarter of the time.
    thread_local std::vector<float> all;
    all.resize(static_cast<std::size_t>(out.shape.rows * out.shape.cols));
    original(local_expert, out.shape, 0, out.shape.rows, all);
    scheme_->quantize_weight(all, out);
  }

  void original(std::int64_t local_expert, const MatrixShape& shape, std::int64_t begin,
                std::int64_t end, std::span<float> out) const override {
    const Tensor& tensor = shape.role == Role::w13 ? w13_ : w2_;
    const auto cols = static_cast<std::size_t>(shape.cols);
    for (std::int64_t r = begin; r < end; ++r) {
      const RowId id = {.tensor = global_ids_[static_cast<std::size_t>(local_expert)],
                        .row = row_key(shape.role, r),
                        .stored = r};
      const auto row = out.subspan(static_cast<std::size_t>(r - begin) * cols, cols);
      tensor.rows->fill(id, row);
      if (!tensor.spread.flat()) multiply(tensor.spread, id, row);
    }
  }

  std::vector<float> bias(std::int64_t local_expert, Role role) const override {
    if (!layer_.expert_bias) return {};
    const std::uint64_t expert = global_ids_[static_cast<std::size_t>(local_expert)];
    std::vector<float> values = bias_by_key(expert, role);
    if (role != Role::w13 || layer_.gate_up_order == GateUpOrder::concatenated) return values;
    std::vector<float> out(values.size());
    for (std::size_t r = 0; r < out.size(); ++r) {
      out[r] = values[static_cast<std::size_t>(row_key(role, static_cast<std::int64_t>(r)))];
    }
    return out;
  }

  float activation_scale(Role role) const override {
    if (!traits_.activation.static_scale) return 0;
    double largest = kTypicalLargestH;
    if (plan_) largest = exact_h_anchor(layer_, *plan_);
    if (role == Role::w13) {
      largest = plan_ ? exact_x(*plan_)->largest()
                      : random_rows(distribution_, x_spec(layer_, traits_, seed_))->largest();
    }
    return static_cast<float>(largest / traits_.activation.highest);
  }

 private:
  std::optional<ExactPlan> plan(int unit_spread) const {
    if (distribution_ != Distribution::exact) return std::nullopt;
    return plan_exact(layer_, traits_, seed_, unit_spread);
  }

  std::vector<float> bias_by_key(std::uint64_t expert, Role role) const {
    const bool first = role == Role::w13;
    if (plan_) return first ? exact_w13_bias(*plan_, expert) : exact_w2_bias(*plan_, expert);
    std::vector<float> values(static_cast<std::size_t>(weight_shape(layer_, role).rows));
    bias_->fill(RandomStream(seed_, first ? Purpose::w13_bias : Purpose::w2_bias, expert), 0,
                values);
    return values;
  }

  Tensor tensor(Role role, int unit_spread) const {
    const bool first = role == Role::w13;
    const MatrixShape shape = weight_shape(layer_, role);
    const ScaleUnit unit = resolved_unit(traits_.weight, shape);
    const int spread = plan_ ? 0 : unit_spread;
    Tensor tensor{.rows = nullptr,
                  .spread = UnitSpread(seed_, first ? Purpose::w13_spread : Purpose::w2_spread,
                                       unit, shape.cols, -spread, spread)};
    if (plan_) {
      tensor.rows = first ? exact_w13(*plan_, unit) : exact_w2(*plan_, unit);
    } else {
      tensor.rows = random_rows(
          distribution_, {.dtype = layer_.dtype,
                          .deviation = 1 / std::sqrt(static_cast<double>(shape.cols)),
                          .rows = shape.rows,
                          .cols = shape.cols,
                          .operand = traits_.weight,
                          .seed = seed_,
                          .values = first ? Purpose::w13 : Purpose::w2,
                          .structure = first ? Purpose::w13_structure : Purpose::w2_structure});
    }
    return tensor;
  }

  // Row in memory -> gate rows, then up rows.
  std::int64_t row_key(Role role, std::int64_t stored) const {
    if (role != Role::w13 || layer_.gate_up_order == GateUpOrder::concatenated) return stored;
    return stored / 2 + (stored % 2 == 0 ? 0 : layer_.intermediate_size);
  }

  void multiply(const UnitSpread& spread, const RowId& id, std::span<float> row) const {
    const auto step = static_cast<std::size_t>(spread.unit_cols());
    for (std::size_t begin = 0; begin < row.size(); begin += step) {
      const auto factor =
          static_cast<float>(spread.factor(id.tensor, id.stored, static_cast<std::int64_t>(begin)));
      for (float& v : row.subspan(begin, std::min(step, row.size() - begin))) {
        v = round_to(layer_.dtype, v * factor);
      }
    }
  }

  Layer layer_;
  std::shared_ptr<const Scheme> scheme_;
  SchemeTraits traits_;
  Distribution distribution_;
  std::uint64_t seed_;
  std::vector<std::uint64_t> global_ids_;
  std::optional<ExactPlan> plan_;
  Tensor w13_, w2_;
  std::optional<ValueTable> bias_;
};

}  // namespace

std::unique_ptr<ExpertSource> generated_experts(const Layer& layer,
                                                std::shared_ptr<const Scheme> scheme,
                                                Distribution distribution, std::uint64_t seed,
                                                int unit_spread) {
  require_sizes(layer);
  if (unit_spread < 0 || unit_spread > kLargestSpread) {
    throw InputError("unit spread", std::to_string(unit_spread),
                     "0 to " + std::to_string(kLargestSpread));
  }
  return std::make_unique<GeneratedExperts>(layer, std::move(scheme), distribution, seed,
                                            unit_spread);
}

}  // namespace moegauge
