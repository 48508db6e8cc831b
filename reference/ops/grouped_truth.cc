#include "reference/ops/grouped_truth.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>
#include <vector>

#include "reference/base/thread_pool.h"
#include "reference/gemm/gemm.h"
#include "reference/ops/grouped_rows.h"
#include "reference/ops/grouped_weights.h"
#include "reference/ops/judging.h"
#include "reference/ops/quantization.h"

namespace moegauge {
namespace {

// Products of one expert's distinct rows, computed for a stretch of b's rows at a time.
class Products {
 public:
  Products(const GroupedShape& shape, int threads) : shape_(shape), pool_(threads) {}

  // Rows [first, first + rows) of c [?, N'] = a b^T, the rows of b from `b_rows`.
  template <typename Matrix>
  void multiply(const std::vector<double>& a, std::int64_t rows, const Matrix& b_rows,
                std::vector<double>& c, std::int64_t first, bool magnitudes = false) {
    constexpr std::int64_t kStretch = 256;
    const std::int64_t k = shape_.contracted, n = shape_.columns;
    std::vector<double> b(static_cast<std::size_t>(kStretch * k));
    for (std::int64_t begin = 0; begin < n; begin += kStretch) {
      const std::int64_t count = std::min(kStretch, n - begin);
      b_rows(begin, begin + count, std::span(b).first(static_cast<std::size_t>(count * k)));
      if (magnitudes) {
        for (double& value : b) value = std::fabs(value);
      }
      Gemm::best().multiply({a.data(), rows, k, k}, {b.data(), count, k, k},
                            {c.data() + first * n + begin, rows, count, n}, pool_);
    }
  }

 private:
  const GroupedShape shape_;
  ThreadPool pool_;
};

std::vector<double> gather_rows(const std::vector<double>& from,
                                const std::vector<std::int32_t>& rows, std::int64_t cols) {
  std::vector<double> out;
  out.reserve(rows.size() * static_cast<std::size_t>(cols));
  for (const std::int32_t row : rows) {
    out.insert(out.end(), from.begin() + row * cols, from.begin() + (row + 1) * cols);
  }
  return out;
}

// Which distinct rows each expert has: rows of a that are equal in every bit are computed once.
struct DistinctRows {
  std::vector<std::vector<std::int32_t>> sources;  // of each expert, rows of a
  std::vector<std::int64_t> first;                 // of each expert, among all
  std::vector<std::int32_t> truth_row;             // of each output row, -1 where it is not defined
  std::int64_t count = 0;
};

DistinctRows distinct_rows(const OpProblem& p, const GroupedShape& shape,
                           std::span<const Tensor> inputs, std::int64_t output_rows) {
  const Tensor& a = tensor_named(inputs, "a");
  const Tensor* scale = find_tensor(inputs, "a_scale");
  const auto rows = static_cast<std::size_t>(shape.rows);
  const std::size_t width = rows > 0 ? a.bytes.size() / rows : 0;
  const bool per_row = scale != nullptr && scale->spec.shape.size() > 1;
  const std::size_t scale_width = per_row && rows > 0 ? scale->bytes.size() / rows : 0;
  const auto key = [&](std::int32_t row) {
    const auto r = static_cast<std::size_t>(row);
    std::string text(reinterpret_cast<const char*>(a.bytes.data()) + r * width, width);
    if (per_row) {
      text.append(reinterpret_cast<const char*>(scale->bytes.data()) + r * scale_width,
                  scale_width);
    }
    return text;
  };
  const auto experts = static_cast<std::size_t>(shape.experts);
  std::vector<std::unordered_map<std::string, std::int32_t>> seen(experts);
  DistinctRows distinct;
  distinct.sources.resize(experts);
  std::vector<RowUse> uses = row_uses(p, inputs);
  std::vector<std::int32_t> place;
  for (const RowUse& use : uses) {
    const auto e = static_cast<std::size_t>(use.expert);
    const auto [known, fresh] =
        seen[e].emplace(key(use.source), static_cast<std::int32_t>(distinct.sources[e].size()));
    if (fresh) distinct.sources[e].push_back(use.source);
    place.push_back(known->second);
  }
  for (const auto& sources : distinct.sources) {
    distinct.first.push_back(distinct.count);
    distinct.count += std::ssize(sources);
  }
  distinct.truth_row.assign(static_cast<std::size_t>(output_rows), -1);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    distinct.truth_row[static_cast<std::size_t>(uses[i].output)] = static_cast<std::int32_t>(
        distinct.first[static_cast<std::size_t>(uses[i].expert)] + place[i]);
  }
  return distinct;
}

// a as doubles, as kernels see it.
std::vector<double> values_of(const OpProblem& p, const GroupedShape& shape,
                              std::span<const Tensor> inputs) {
  const Tensor& a = tensor_named(inputs, "a");
  const OperandTraits traits = p.scheme->traits().activation;
  if (traits.scale == ScaleKind::none) return decoded(a);
  return dequantized(UnitGrid(shape.rows, shape.contracted, traits.unit), a,
                     tensor_named(inputs, "a_scale"));
}

}  // namespace

std::unique_ptr<const OpTruth> grouped_truth(const OpProblem& p, std::span<const Tensor> weights,
                                             std::span<const Tensor> inputs, const OpDraw* drawn,
                                             int threads) {
  const GroupedShape shape = grouped_shape(p);
  const std::int64_t k = shape.contracted, n = shape.columns;
  const DistinctRows distinct =
      distinct_rows(p, shape, inputs, p.outputs[0].elements() / std::max<std::int64_t>(n, 1));
  RowsTruth rows = {.rows = distinct.count,
                    .cols = n,
                    .exact = std::vector<double>(static_cast<std::size_t>(distinct.count * n)),
                    .magnitude = {},
                    .dtype = p.layer.dtype,
                    .limits = p.scheme->error_limits(p.layer.dtype, false).over(p.tokens),
                    .quantization_of = drawn ? "operands before quantisation, output unrounded"
                                             : "the output before it is rounded",
                    .truth_row = distinct.truth_row,
                    .output_shape = p.outputs[0].shape};
  rows.magnitude = rows.exact;
  const std::vector<double> a = values_of(p, shape, inputs);
  const auto infinite = rows_with_infinity(a, shape.rows);
  for (const auto& sources : distinct.sources) {
    for (const std::int32_t source : sources) {
      rows.not_compared.push_back(infinite[static_cast<std::size_t>(source)]);
    }
  }
  std::vector<double> before;
  std::unique_ptr<ExpertSource> originals;
  if (drawn != nullptr) {
    const std::vector<float> wide = laid_out(p, draw_grouped_rows(p, *drawn));
    before.assign(wide.begin(), wide.end());
    originals = experts_of(p, *drawn);
    rows.unquantized = rows.exact;
  }
  Products products(shape, threads);
  for (std::int64_t e = 0; e < shape.experts; ++e) {
    const auto& sources = distinct.sources[static_cast<std::size_t>(e)];
    if (sources.empty()) continue;
    const std::int64_t first = distinct.first[static_cast<std::size_t>(e)];
    const ConstMatrix b = expert_matrix(shape, p.layer, weights, e);
    const auto emulated = [&](std::int64_t begin, std::int64_t end, std::span<double> out) {
      p.scheme->dequantize_weight(b, begin, end, out);
    };
    std::vector<double> own = gather_rows(a, sources, k);
    products.multiply(own, std::ssize(sources), emulated, rows.exact, first);
    for (double& value : own) value = std::fabs(value);
    products.multiply(own, std::ssize(sources), emulated, rows.magnitude, first, true);
    if (!originals) continue;
    const auto original = [&](std::int64_t begin, std::int64_t end, std::span<double> out) {
      std::vector<float> floats(out.size());
      originals->original(e, b.shape, begin, end, floats);
      std::ranges::copy(floats, out.begin());
    };
    products.multiply(gather_rows(before, sources, k), std::ssize(sources), original,
                      rows.unquantized, first);
  }
  return std::make_unique<MatrixTruth>(std::move(rows));
}

}  // namespace moegauge
