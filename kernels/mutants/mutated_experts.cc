#include "kernels/mutants/mutated_experts.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace moegauge {
namespace {

std::size_t scale_bytes(ScaleKind kind) {
  switch (kind) {
    case ScaleKind::none:
      return 0;
    case ScaleKind::fp32:
      return 4;
    case ScaleKind::e8m0:
      return 1;
    case ScaleKind::activation_dtype:
      return 2;
  }
  return 0;
}

// Forwards everything; the mutants override what they spoil.
class Spoiled : public ExpertSource {
 public:
  Spoiled(const Problem& problem, const ExpertSource& experts)
      : problem_(problem), experts_(experts) {}
  void quantized(std::int64_t expert, const Matrix& out) const override {
    experts_.quantized(expert, out);
  }
  void original(std::int64_t expert, const MatrixShape& shape, std::int64_t begin, std::int64_t end,
                std::span<float> out) const override {
    experts_.original(expert, shape, begin, end, out);
  }
  float activation_scale(Role role) const override { return experts_.activation_scale(role); }
  std::vector<float> bias(std::int64_t expert, Role role) const override {
    return experts_.bias(expert, role);
  }

 protected:
  const Problem problem_;
  const ExpertSource& experts_;
};

// Made anew from the values before quantisation: a scale block may hold gate and up rows alike, so
// that quantised rows cannot simply change places.
class SwappedGateUp final : public Spoiled {
 public:
  using Spoiled::Spoiled;
  void quantized(std::int64_t expert, const Matrix& out) const override {
    if (out.shape.role != Role::w13) return experts_.quantized(expert, out);
    const auto rows = out.shape.rows, cols = out.shape.cols;
    std::vector<float> w(static_cast<std::size_t>(rows * cols));
    experts_.original(expert, out.shape, 0, rows, w);
    for (const auto& [gate, up] : pairs()) {
      std::swap_ranges(w.begin() + gate * cols, w.begin() + (gate + 1) * cols,
                       w.begin() + up * cols);
    }
    problem_.scheme->quantize_weight(w, out);
  }
  std::vector<float> bias(std::int64_t expert, Role role) const override {
    std::vector<float> b = experts_.bias(expert, role);
    if (role != Role::w13 || b.empty()) return b;
    for (const auto& [gate, up] : pairs()) {
      std::swap(b[static_cast<std::size_t>(gate)], b[static_cast<std::size_t>(up)]);
    }
    return b;
  }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs() const {
    const std::int64_t n = problem_.layer.intermediate_size;
    const bool interleaved = problem_.layer.gate_up_order == GateUpOrder::interleaved;
    std::vector<std::pair<std::int64_t, std::int64_t>> rows;
    for (std::int64_t i = 0; i < n; ++i) {
      rows.emplace_back(interleaved ? 2 * i : i, interleaved ? 2 * i + 1 : n + i);
    }
    return rows;
  }
};

class NeighboursWeights final : public Spoiled {
 public:
  using Spoiled::Spoiled;
  void quantized(std::int64_t expert, const Matrix& out) const override {
    experts_.quantized(neighbour(expert), out);
  }
  std::vector<float> bias(std::int64_t expert, Role role) const override {
    return experts_.bias(neighbour(expert), role);
  }

 private:
  std::int64_t neighbour(std::int64_t expert) const {
    return (expert + 1) % problem_.layer.local_experts();
  }
};

class ShiftedScales final : public Spoiled {
 public:
  using Spoiled::Spoiled;
  void quantized(std::int64_t expert, const Matrix& out) const override {
    experts_.quantized(expert, out);
    const auto one =
        static_cast<std::ptrdiff_t>(scale_bytes(problem_.scheme->traits().weight.scale));
    if (!out.scales.empty())
      std::rotate(out.scales.begin(), out.scales.begin() + one, out.scales.end());
  }
};

}  // namespace

std::unique_ptr<const ExpertSource> swapped_gate_up(const Problem& p, const ExpertSource& experts) {
  return std::make_unique<SwappedGateUp>(p, experts);
}
std::unique_ptr<const ExpertSource> neighbours_weights(const Problem& p,
                                                       const ExpertSource& experts) {
  return std::make_unique<NeighboursWeights>(p, experts);
}
std::unique_ptr<const ExpertSource> shifted_scales(const Problem& p, const ExpertSource& experts) {
  return std::make_unique<ShiftedScales>(p, experts);
}

std::size_t scale_count(const Problem& problem, Role role) {
  const std::size_t one = scale_bytes(problem.scheme->traits().weight.scale);
  return one == 0 ? 0
                  : problem.scheme->weight_bytes(weight_shape(problem.layer, role)).scales / one;
}

}  // namespace moegauge
