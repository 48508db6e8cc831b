#include "harness/workload/replay.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

#include "harness/checkpoint/unpacked.h"
#include "harness/workload/drawn_rows.h"
#include "harness/workload/recent.h"
#include "harness/workload/replay_file.h"
#include "harness/workload/replay_layer.h"
#include "reference/base/input_error.h"
#include "reference/routing.h"
#include "reference/schemes/matrix_storage.h"

namespace moegauge {
namespace {

// What the file says of one of the two weight tensors.
struct GivenWeight {
  struct Part {
    const TensorInfo* tensor;
    std::span<std::byte> Matrix::*bytes;
  };
  const TensorInfo* originals = nullptr;  // then no parts
  std::vector<Part> parts = {};
  const TensorInfo* split_scale = nullptr;  // one of gate and one of up in place of the scheme's
  bool whole = false;                       // no part is missing
};

GivenWeight given_weight(const ReplayFile& file, const Problem& problem, Role role) {
  const MatrixShape shape = weight_shape(problem.layer, role);
  const auto parts = canonical_parts(*problem.scheme, shape, problem.layer.local_experts());
  GivenWeight given;
  const TensorInfo* values = file.find(parts.front().name);
  // Where weights are not quantised the canonical values are the originals.
  const bool plain = problem.scheme->traits().weight.element == Element::activation_dtype;
  if (values != nullptr && (plain || !fits(*values, parts.front().form))) {
    given.originals = values;
    return given;
  }
  const auto split = split_scale_form(*problem.scheme, shape, problem.layer.local_experts());
  for (const CanonicalPart& part : parts) {
    const TensorInfo* tensor = file.find(part.name);
    if (tensor == nullptr) continue;
    given.parts.push_back({tensor, part.bytes});
    if (split && part.bytes == &Matrix::scales && fits(*tensor, *split)) given.split_scale = tensor;
  }
  given.whole = given.parts.size() == parts.size();
  return given;
}

// An expert's w13, its rows scaled as gate or as up.
Unpacked split_rows(std::span<const std::byte> codes, std::span<const float, 2> scales,
                    const MatrixShape& shape) {
  Unpacked rows{.rows = shape.rows, .cols = shape.cols, .units = 1};
  rows.codes.resize(codes.size());
  std::memcpy(rows.codes.data(), codes.data(), codes.size());
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const bool up =
        shape.gate_up_order == GateUpOrder::interleaved ? row % 2 == 1 : row >= shape.rows / 2;
    rows.scales.push_back(scales[up ? 1 : 0]);
  }
  return rows;
}

class ReplayedExperts final : public ExpertSource {
 public:
  ReplayedExperts(const ReplayFile& file, const Problem& problem,
                  std::unique_ptr<ExpertSource> others)
      : file_(file),
        problem_(problem),
        others_(std::move(others)),
        w13_(given_weight(file, problem, Role::w13)),
        w2_(given_weight(file, problem, Role::w2)) {}

  const GivenWeight& given(Role role) const { return role == Role::w13 ? w13_ : w2_; }

  void quantized(std::int64_t expert, const Matrix& out) const override {
    const GivenWeight& weight = given(out.shape.role);
    if (weight.originals != nullptr) {
      std::vector<float> all(static_cast<std::size_t>(out.shape.rows * out.shape.cols));
      original(expert, out.shape, 0, out.shape.rows, all);
      return problem_.scheme->quantize_weight(all, out);
    }
    read_parts(weight, expert, out);
    if (weight.split_scale != nullptr) {
      store_canonical(split(weight, expert, out), *problem_.scheme, out);
    }
  }

  void original(std::int64_t expert, const MatrixShape& shape, std::int64_t begin, std::int64_t end,
                std::span<float> out) const override {
    const GivenWeight& weight = given(shape.role);
    if (weight.originals != nullptr) {
      return file_.read_floats(*weight.originals, (expert * shape.rows + begin) * shape.cols, out);
    }
    if (weight.parts.empty()) return others_->original(expert, shape, begin, end, out);
    const auto whole = recent_.get(std::pair(expert, shape.role), [&] {
      MatrixStorage storage(*problem_.scheme, shape);
      read_parts(weight, expert, storage.view());
      return storage;
    });
    if (weight.split_scale != nullptr) {
      const auto all =
          dequantize(split(weight, expert, whole->view()), problem_.scheme->traits().weight);
      std::copy_n(all.begin() + begin * shape.cols, out.size(), out.begin());
      return;
    }
    std::vector<double> exact(out.size());
    problem_.scheme->dequantize_weight(whole->view(), begin, end, exact);
    std::ranges::transform(exact, out.begin(), [](double v) { return static_cast<float>(v); });
  }

  float activation_scale(Role role) const override {
    const TensorInfo* given = file_.find(role == Role::w13 ? "x_scale" : "h_scale");
    return given != nullptr ? file_.read<float>(*given).front() : others_->activation_scale(role);
  }

  std::vector<float> bias(std::int64_t expert, Role role) const override {
    const TensorInfo* given = file_.find(role == Role::w13 ? "w13_bias" : "w2_bias");
    if (given == nullptr) return others_->bias(expert, role);
    std::vector<float> values(static_cast<std::size_t>(weight_shape(problem_.layer, role).rows));
    file_.read_floats(*given, expert * static_cast<std::int64_t>(values.size()), values);
    return values;
  }

 private:
  // As the file has them; of a split scale nothing.
  void read_parts(const GivenWeight& weight, std::int64_t expert, const Matrix& out) const {
    if (!weight.whole) others_->quantized(expert, out);
    for (const auto& part : weight.parts) {
      if (part.tensor == weight.split_scale) continue;
      const std::span<std::byte> bytes = out.*part.bytes;
      file_.read_bytes(*part.tensor, static_cast<std::uint64_t>(expert) * bytes.size(), bytes);
    }
  }
  template <typename Byte>
  Unpacked split(const GivenWeight& weight, std::int64_t expert,
                 const BasicMatrix<Byte>& values) const {
    std::array<float, 2> scales = {};
    file_.read_floats(*weight.split_scale, expert * 2, scales);
    return split_rows(values.values, scales, values.shape);
  }

  const ReplayFile& file_;
  const Problem problem_;
  const std::unique_ptr<ExpertSource> others_;
  const GivenWeight w13_, w2_;
  mutable Recent<std::pair<std::int64_t, Role>, MatrixStorage> recent_;
};

// Rows that the file gives; empty members are drawn.
struct Rows {
  std::vector<std::uint16_t> x;
  std::vector<std::int32_t> topk_ids;
  std::vector<float> topk_weights;
  bool has_x = false, has_ids = false, has_weights = false;
};

Rows given_rows(const ReplayFile& file, const Model& model, std::int64_t fused) {
  Rows rows;
  const auto take = [&file](const char* name, auto& values) {
    const TensorInfo* tensor = file.find(name);
    if (tensor == nullptr) return false;
    values = file.read<typename std::remove_reference_t<decltype(values)>::value_type>(*tensor);
    return true;
  };
  rows.has_x = take("x", rows.x);
  rows.has_ids = take("topk_ids", rows.topk_ids);
  rows.has_weights = take("topk_weights", rows.topk_weights);
  if (const TensorInfo* logits = file.find("router_logits")) {
    check_routing(file, model);
    Router router = router_of(model);
    router.shared_experts = fused;
    std::vector<float> bias;
    take("correction_bias", bias);
    RoutedTokens routed = route(router, file.read_floats(*logits), logits->shape[0], bias);
    rows.topk_ids = std::move(routed.topk_ids);
    rows.topk_weights = std::move(routed.topk_weights);
    rows.has_ids = rows.has_weights = true;
  }
  return rows;
}

class ReplayedWorkload final : public Workload {
 public:
  ReplayedWorkload(std::unique_ptr<ReplayFile> file, const Model& model, const Problem& problem,
                   std::int64_t fused, const Generator& generator, Weights others)
      : file_(std::move(file)),
        problem_(problem),
        fused_(fused),
        generator_(generator),
        other_quantization_of_(std::move(others.quantization_of)),
        other_originals_(others.originals),
        experts_(*file_, problem, std::move(others.experts)),
        rows_(moegauge::given_rows(*file_, model, fused)) {}

  const ExpertSource& experts() const override { return experts_; }

  GivenRows given_rows() const override {
    if (rows_.has_x && rows_.has_ids && rows_.has_weights) return GivenRows::all;
    return rows_.has_x || rows_.has_ids || rows_.has_weights ? GivenRows::some : GivenRows::none;
  }

  OwnedInputs draw(const std::string& routing, std::int64_t tokens,
                   std::uint64_t stream) const override {
    OwnedInputs inputs;
    inputs.tokens = tokens;
    if (given_rows() != GivenRows::all) {
      inputs = drawn_rows(problem_, fused_, generator_, routing, tokens, stream);
    }
    const auto put = [&](bool given, const auto& from, auto& to, std::int64_t width) {
      if (!given) return;
      if (std::ssize(from) != tokens * width) {
        throw InputError(file_->where(),
                         "it holds rows for " + std::to_string(std::ssize(from) / width) +
                             " tokens, the case has " + std::to_string(tokens),
                         "they must agree");
      }
      to = from;
    };
    put(rows_.has_x, rows_.x, inputs.x, problem_.layer.hidden_size);
    put(rows_.has_ids, rows_.topk_ids, inputs.topk_ids, problem_.layer.top_k);
    put(rows_.has_weights, rows_.topk_weights, inputs.topk_weights, problem_.layer.top_k);
    return inputs;
  }

  Generator generator() const override { return generator_; }

  std::string quantization_of() const override {
    const auto absent = [this](Role role) {
      const GivenWeight& given = experts_.given(role);
      return given.originals == nullptr && given.parts.empty();
    };
    if (absent(Role::w13) && absent(Role::w2)) return other_quantization_of_;
    const bool w13 = originals(Role::w13).has_value(), w2 = originals(Role::w2).has_value();
    if (w13 && w2) return "weights and activations before quantisation";
    if (!w13 && !w2) return "dequantised weights of the file and activations before quantisation";
    return std::string(w13 ? "w13" : "w2") + " and activations before quantisation, dequantised " +
           (w13 ? "w2" : "w13") + " of the file";
  }

  std::optional<TensorDtype> originals(Role role) const override {
    const GivenWeight& given = experts_.given(role);
    if (given.originals != nullptr) return given.originals->dtype;
    return given.parts.empty() ? other_originals_ : std::nullopt;
  }

 private:
  const std::unique_ptr<ReplayFile> file_;
  const Problem problem_;
  const std::int64_t fused_;
  const Generator generator_;
  const std::string other_quantization_of_;
  const std::optional<TensorDtype> other_originals_;
  const ReplayedExperts experts_;
  const Rows rows_;
};

// A metadata key of the file; nothing where it has none.
template <typename T, typename Parse>
T metadata_or(const ReplayFile& file, const char* key, T otherwise, const char* right,
              const Parse& parse) {
  const std::string text = file.metadata(key);
  if (text.empty()) return otherwise;
  const std::optional<T> value = parse(text);
  if (value) return *value;
  throw InputError(file.where(), std::string("metadata key ") + key + " is '" + text + "'", right);
}

}  // namespace

Generator replay_generator(const ReplayFile& file, std::uint64_t seed) {
  Generator generator;
  generator.seed = metadata_or(file, "seed", seed, "a number", [](const std::string& text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return whole ? std::optional(value) : std::nullopt;
  });
  generator.distribution =
      metadata_or(file, "inputs", Distribution::gaussian, "the name of a distribution",
                  [](const std::string& text) { return distribution_from(text); });
  return generator;
}

std::unique_ptr<Workload> replayed_workload(std::unique_ptr<ReplayFile> file, const Model& model,
                                            const Problem& problem, std::int64_t fused,
                                            const Generator& generator, Weights others) {
  return std::make_unique<ReplayedWorkload>(std::move(file), model, problem, fused, generator,
                                            std::move(others));
}

}  // namespace moegauge
