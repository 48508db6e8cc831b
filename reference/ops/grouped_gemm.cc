// grouped_gemm: every expert's rows times that expert's matrix, in the layouts that engines use.
//
//   gemm    gate_up: K' = K, N' = 2N, a row is a token's x; down: K' = N, N' = K, a row is a pair's
//   b [experts of this rank, N', K'], b_scale, b_zero_point, b_g_idx: the scheme's canonical
//   storage a [rows, K'], a_scale: in the layer's dtype, or codes and scales as `quantize` makes
//   them
//
//   layout  sorted      a [M or M * top_k, K'] untouched; sorted_token_ids, expert_ids and
//                       num_tokens_post_padded as `align` gives them with remote experts skipped,
//                       in blocks of block_size: an entry is a pair p, whose row of a is p / top_k
//                       (gate_up) or p (down). output [M * top_k, N'], row p; of pairs that no
//                       entry names it is not defined
//           contiguous  a [M * top_k, K'] holds each expert's rows in turn, rows_per_expert of
//           them;
//                       output [M * top_k, N'], not defined beyond them
//           batched     a [experts, M, K'], of which rows_per_expert are used; output [experts, M,
//           N']
//
// output = sum over K' of a * b, rounded once to the layer's dtype.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "reference/base/thread_pool.h"
#include "reference/dtype.h"
#include "reference/gemm/gemm.h"
#include "reference/ops/grouped_rows.h"
#include "reference/ops/judging.h"
#include "reference/ops/quantization.h"

namespace moegauge {
namespace {

std::unique_ptr<ExpertSource> experts_of(const OpProblem& p, const OpDraw& draw) {
  return generated_experts(p.layer, p.scheme, draw.distribution, draw.seed, draw.unit_spread);
}

// Expert e's part of each weight tensor, as its scheme reads it.
ConstMatrix expert_matrix(const GroupedShape& shape, const Layer& layer,
                          std::span<const Tensor> weights, std::int64_t expert) {
  ConstMatrix m = {.shape = weight_shape(layer, shape.role)};
  const auto part = [&](const char* name) -> std::span<const std::byte> {
    const Tensor* tensor = find_tensor(weights, name);
    if (tensor == nullptr) return {};
    const std::size_t bytes = tensor->bytes.size() / static_cast<std::size_t>(shape.experts);
    return std::span(tensor->bytes).subspan(static_cast<std::size_t>(expert) * bytes, bytes);
  };
  m.values = part("b");
  m.scales = part("b_scale");
  m.zero_points = part("b_zero_point");
  m.group_index = part("b_g_idx");
  return m;
}

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

class GroupedGemm final : public Op {
 public:
  std::string_view name() const override { return "grouped_gemm"; }
  bool repeats_tokens() const override { return true; }
  std::vector<OpField> fields() const override {
    return {{.name = "layout",
             .words = {"sorted", "contiguous", "batched"},
             .fallback = std::string("sorted")},
            {.name = "gemm", .words = {"gate_up", "down"}, .fallback = std::string("gate_up")},
            {.name = "block_size", .low = 1, .high = 65536, .fallback = std::int64_t{64}}};
  }

  std::optional<std::string> describe(OpProblem& p) const override {
    const GroupedShape shape = grouped_shape(p);
    const OperandTraits a = p.scheme->traits().activation;
    const std::int64_t pairs = p.tokens * p.layer.top_k, block = p.number("block_size");
    if (std::max(shape.rows, aligned_room(pairs, shape.experts, block)) > INT32_MAX) {
      return std::to_string(shape.rows) + " rows are more than 32 bits count";
    }
    describe_weights(p, shape);
    const bool batched = p.word("layout") == "batched";
    const auto matrix = [&](std::int64_t rows, std::int64_t cols) {
      return batched ? std::vector<std::int64_t>{shape.experts, p.tokens, cols}
                     : std::vector<std::int64_t>{rows, cols};
    };
    const TensorType dtype = tensor_type(p.layer.dtype);
    const bool plain = a.scale == ScaleKind::none;
    p.inputs = {{"a", plain ? dtype : code_type(a.element), matrix(shape.rows, shape.contracted)}};
    if (!plain) {
      p.inputs.push_back(
          activation_scale_spec("a_scale", a, UnitGrid(shape.rows, shape.contracted, a.unit)));
    }
    if (p.word("layout") == "sorted") {
      const std::int64_t room = aligned_room(pairs, shape.experts, block);
      p.inputs.push_back({"sorted_token_ids", TensorType::int32, {room}});
      p.inputs.push_back({"expert_ids", TensorType::int32, {(room + block - 1) / block}});
      p.inputs.push_back({"num_tokens_post_padded", TensorType::int32, {1}});
    } else {
      p.inputs.push_back({"rows_per_expert", TensorType::int32, {shape.experts}});
    }
    p.outputs = {{"output", dtype, matrix(pairs, shape.columns)}};
    return std::nullopt;
  }

  std::vector<Tensor> draw_weights(const OpProblem& p, const OpDraw& draw) const override {
    const GroupedShape shape = grouped_shape(p);
    auto weights = make_tensors(p.weights);
    const auto experts = experts_of(p, draw);
    ThreadPool pool(ThreadPool::usable_processors());
    pool.parallel_for(shape.experts, [&](std::int64_t e) {
      const ConstMatrix m = expert_matrix(shape, p.layer, weights, e);
      const auto writable = [](std::span<const std::byte> part) {
        return std::span(const_cast<std::byte*>(part.data()), part.size());
      };
      experts->quantized(e, {m.shape, writable(m.values), writable(m.scales),
                             writable(m.zero_points), writable(m.group_index)});
    });
    return weights;
  }

  std::vector<Tensor> draw_inputs(const OpProblem& p, const OpDraw& draw) const override {
    const GroupedShape shape = grouped_shape(p);
    const OperandTraits traits = p.scheme->traits().activation;
    const DrawnRows drawn = draw_grouped_rows(p, draw);
    const std::vector<float> a = laid_out(p, drawn);
    auto inputs = make_tensors(p.inputs);
    if (traits.scale == ScaleKind::none) {
      std::ranges::transform(a, inputs[0].as<std::uint16_t>().begin(),
                             [&](float v) { return to_bits(p.layer.dtype, v); });
    } else {
      const float given =
          traits.static_scale ? experts_of(p, draw)->activation_scale(shape.role) : 0;
      Quantized q = quantize_activations(
          traits, UnitGrid(shape.rows, shape.contracted, traits.unit), a, given);
      inputs[0].bytes = std::move(q.codes.bytes);
      inputs[1].bytes = std::move(q.scales.bytes);
    }
    place_rows(p, drawn.topk_ids, inputs);
    return inputs;
  }

  OpWork work(const OpProblem& p, std::span<const Tensor> inputs) const override {
    const GroupedShape shape = grouped_shape(p);
    const auto uses = row_uses(p, inputs);
    std::vector<bool> experts(static_cast<std::size_t>(shape.experts));
    std::vector<bool> sources(static_cast<std::size_t>(shape.rows));
    for (const RowUse& use : uses) {
      experts[static_cast<std::size_t>(use.expert)] = true;
      sources[static_cast<std::size_t>(use.source)] = true;
    }
    const auto share = [](const std::vector<bool>& of) {
      return of.empty() ? 0.0
                        : static_cast<double>(std::ranges::count(of, true)) /
                              static_cast<double>(of.size());
    };
    double rows_bytes = 0;
    for (const TensorSpec& spec : p.inputs) {
      if (spec.name.starts_with("a")) rows_bytes += static_cast<double>(spec.bytes());
    }
    const auto used = static_cast<double>(uses.size());
    const auto n = static_cast<double>(shape.columns), k = static_cast<double>(shape.contracted);
    return {.weight_bytes = share(experts) * bytes_of(p.weights),
            .operand_bytes = share(sources) * rows_bytes + used * n * 2,
            .flops = 2 * used * n * k};
  }

  std::unique_ptr<const OpTruth> truth(const OpProblem& p, std::span<const Tensor> weights,
                                       std::span<const Tensor> inputs, const OpDraw* drawn,
                                       int threads) const override;

  std::optional<std::string> not_finite(const OpProblem& p, std::span<const Tensor> inputs,
                                        std::span<const Tensor> outputs) const override {
    const std::int64_t n = grouped_shape(p).columns;
    const std::uint16_t exponent = p.layer.dtype == Dtype::bf16 ? 0x7F80 : 0x7C00;
    const auto y = outputs[0].as<std::uint16_t>();
    for (const RowUse& use : row_uses(p, inputs)) {
      for (std::int64_t j = use.output * n; j < (use.output + 1) * n; ++j) {
        if ((y[static_cast<std::size_t>(j)] & exponent) != exponent) continue;
        return "output[" + std::to_string(use.output) + ", " + std::to_string(j % n) + "]";
      }
    }
    return std::nullopt;
  }

 private:
  static void describe_weights(OpProblem& p, const GroupedShape& shape) {
    const OperandTraits traits = p.scheme->traits().weight;
    const MatrixBytes bytes = p.scheme->weight_bytes(weight_shape(p.layer, shape.role));
    const bool plain = traits.element == Element::activation_dtype;
    const TensorType type = plain                ? tensor_type(p.layer.dtype)
                            : traits.zero_points ? TensorType::packed
                                                 : code_type(traits.element);
    p.weights.clear();
    const auto add = [&](const char* name, TensorType of, std::size_t part) {
      if (part == 0) return;
      const auto count = static_cast<std::int64_t>(part) / element_bytes(of);
      p.weights.push_back({name, of, {shape.experts, count}});
    };
    add("b", type, bytes.values);
    if (p.weights[0].shape[1] == shape.columns * shape.contracted) {
      p.weights[0].shape = {shape.experts, shape.columns, shape.contracted};
    }
    const TensorType scale = traits.scale == ScaleKind::e8m0   ? TensorType::e8m0
                             : traits.scale == ScaleKind::fp32 ? TensorType::fp32
                                                               : tensor_type(p.layer.dtype);
    add("b_scale", scale, bytes.scales);
    add("b_zero_point", TensorType::packed, bytes.zero_points);
    add("b_g_idx", TensorType::int32, bytes.group_index);
  }
};

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

std::unique_ptr<const OpTruth> GroupedGemm::truth(const OpProblem& p,
                                                  std::span<const Tensor> weights,
                                                  std::span<const Tensor> inputs,
                                                  const OpDraw* drawn, int threads) const {
  const GroupedShape shape = grouped_shape(p);
  const std::int64_t k = shape.contracted, n = shape.columns;
  const DistinctRows distinct =
      distinct_rows(p, shape, inputs, p.outputs[0].elements() / std::max<std::int64_t>(n, 1));
  RowsTruth rows = {.rows = distinct.count,
                    .cols = n,
                    .exact = std::vector<double>(static_cast<std::size_t>(distinct.count * n)),
                    .magnitude = {},
                    .dtype = p.layer.dtype,
                    .limits = p.scheme->error_limits(p.layer.dtype, false),
                    .quantization_of = drawn ? "operands before quantisation, output unrounded"
                                             : "the output before it is rounded",
                    .truth_row = distinct.truth_row};
  rows.magnitude = rows.exact;
  const std::vector<double> a = values_of(p, shape, inputs);
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

}  // namespace

const Op& grouped_gemm_op() {
  static const GroupedGemm op;
  return op;
}

}  // namespace moegauge
