#include "harness/checkpoint/checkpoint_experts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "harness/checkpoint/expert_packing.h"
#include "harness/json/cursor.h"
#include "harness/json/nearest.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

std::optional<JsonCursor> find_set(const JsonCursor& cursor, std::string_view key) {
  auto found = cursor.find(key);
  if (found && found->is_null()) return std::nullopt;
  return found;
}

QuantizationConfig read_config(const fs::path& folder) {
  const JsonDocument document = JsonDocument::read(folder / "config.json");
  const JsonCursor top(document);
  auto quantization = find_set(top, "quantization_config");
  if (const auto text = find_set(top, "text_config"); !quantization && text) {
    quantization = find_set(*text, "quantization_config");
  }
  QuantizationConfig config{.file = document.where()};
  if (!quantization) return config;
  const std::vector<std::string> served = load_model(folder / "", "").served_as;
  config.method = quantization->at("quant_method").string();
  if (served.empty()) {
    quantization->fail("it is of a kind (" + config.method + ") that has no scheme here",
                       "see moegauge list schemes");
  }
  config.scheme = served.front();
  config.made = make_scheme(config.scheme);
  if (const auto format = find_set(*quantization, "checkpoint_format")) {
    config.zeros_less_one = format->string() != "gptq_v2";
  }
  return config;
}

// A projection's float tensor of one number or one per row, in whatever float type it has.
std::vector<float> read_reals(const Slab& slab) {
  std::int64_t count = 1;
  for (const std::int64_t size : slab.shape) count *= size;
  const SlabBytes bytes(slab);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = bytes.real(i);
  return values;
}

// Experts that are called and packed alike. Stays where it is: the packing refers to the names.
struct Kind {
  Kind(const ExpertNames& called, const QuantizationConfig& config)
      : names(called), packing(find_packing(names, config)) {}
  Kind(const Kind&) = delete;
  Kind& operator=(const Kind&) = delete;

  const ExpertNames names;
  const std::unique_ptr<ExpertPacking> packing;
};

class Experts final : public CheckpointExperts {
 public:
  Experts(const CheckpointLayer& from, const Model& whole, const Problem& problem)
      : checkpoint_(from.folder),
        config_(read_config(from.folder)),
        layer_(problem.layer),
        scheme_(problem.scheme),
        routed_count_(whole.layer.experts),
        whole_size_(whole.layer.intermediate_size),
        routed_(ExpertNames::routed(checkpoint_, from.layer, routed_count_), require_scheme()),
        global_ids_(global_ids()) {
    if (problem.layer.experts > routed_count_) take_shared(from);
    for (const std::int64_t expert : global_ids_) check(expert);
  }

  void quantized(std::int64_t expert, const Matrix& out) const override {
    store_canonical(rows(expert, out.shape.role, 0, out.shape.rows), *scheme_, out);
  }

  void original(std::int64_t expert, const MatrixShape& shape, std::int64_t begin, std::int64_t end,
                std::span<float> out) const override {
    const OperandTraits weight = config_.made ? config_.made->traits().weight : OperandTraits{};
    std::ranges::copy(dequantize(rows(expert, shape.role, begin, end), weight), out.begin());
  }

  // Kernels have one for all experts: the largest.
  float activation_scale(Role role) const override {
    float largest = 0;
    for (const std::int64_t expert : global_ids_) {
      for (const Whole& projection : projections(expert)) {
        if ((projection.projection == Projection::down) != (role == Role::w2)) continue;
        const Slab scale = input_scale(kind_of(expert).names, projection);
        largest = std::max(largest, read_reals(scale).front());
      }
    }
    return largest;
  }

  std::vector<float> bias(std::int64_t expert, Role role) const override {
    if (!layer_.expert_bias) return {};
    std::vector<float> all;
    for (const Slab& slab : biases(global_ids_[static_cast<std::size_t>(expert)], role)) {
      const auto values = read_reals(slab);
      all.insert(all.end(), values.begin(), values.end());
    }
    if (role == Role::w2) return all;
    // This rank's gate and up.
    std::vector<float> mine;
    const auto n = layer_.intermediate_size;
    if (interleaved()) return {all.begin(), all.begin() + 2 * n};
    mine.assign(all.begin(), all.begin() + n);
    mine.insert(mine.end(), all.begin() + whole_size_, all.begin() + whole_size_ + n);
    return mine;
  }

  std::string quantization_of() const override {
    if (originals()) return "weights and activations before quantisation";
    std::string text = "dequantised checkpoint weights, activations before quantisation";
    const std::int64_t height = scheme_->traits().weight.unit.rows;
    if (height > 1 && layer_.intermediate_size % height != 0) {
      text += "; blocks of w13 with gate and up rows are requantised to the larger scale";
    }
    return text;
  }
  std::optional<TensorDtype> originals() const override { return routed_.packing->originals(); }

 private:
  // Weights that are quantised already have the scheme that they have.
  const QuantizationConfig& require_scheme() const {
    if (!config_.scheme.empty() && config_.made->name() != scheme_->name()) {
      throw InputError(config_.file,
                       "it picks the scheme " + config_.made->name() + ", and the case asks for " +
                           scheme_->name(),
                       "ask for that, or give weights that are not quantised");
    }
    return config_;
  }

  // The model's one shared expert follows its routed ones (harness/suite/own_fields.h).
  void take_shared(const CheckpointLayer& from) {
    if (const std::int64_t count = layer_.experts - routed_count_; count > 1) {
      throw InputError(checkpoint_.path().string(),
                       "the model's " + std::to_string(count) + " shared experts are one matrix",
                       "one shared expert can be fused: leave shared_experts out");
    }
    shared_.emplace(ExpertNames::shared(checkpoint_, from.layer), config_);
    if (shared_->packing->originals() == originals()) return;
    throw InputError(checkpoint_.path().string(),
                     "the shared expert's weights have another element type than the routed ones'",
                     "one type for all experts of a fused layer");
  }
  const Kind& kind_of(std::int64_t global) const {
    return global < routed_count_ ? routed_ : *shared_;
  }

  std::vector<std::int64_t> global_ids() const {
    std::vector<std::int64_t> ids(static_cast<std::size_t>(layer_.local_experts()));
    for (std::int32_t e = 0; e < layer_.experts; ++e) {
      if (const std::int32_t local = layer_.local_id(e); local >= 0) {
        ids[static_cast<std::size_t>(local)] = e;
      }
    }
    return ids;
  }

  bool interleaved() const { return layer_.gate_up_order == GateUpOrder::interleaved; }

  // As the checkpoint has them. Gate and up of fused experts are one matrix, read as gate.
  std::vector<Whole> projections(std::int64_t global) const {
    const std::int64_t n = whole_size_, k = layer_.hidden_size;
    const std::int64_t expert = global < routed_count_ ? global : global - routed_count_;
    if (kind_of(global).names.fused()) {
      return {{expert, Projection::gate, 2 * n, k}, {expert, Projection::down, k, n}};
    }
    return {{expert, Projection::gate, n, k},
            {expert, Projection::up, n, k},
            {expert, Projection::down, k, n}};
  }

  void check(std::int64_t global) const {
    const Kind& kind = kind_of(global);
    if (interleaved() && !kind.names.fused()) {
      throw InputError(kind.names.where(), "gate and up are tensors of their own",
                       "the model has them interleaved in one");
    }
    for (const Whole& projection : projections(global)) {
      kind.packing->check(projection);
      if (scheme_->traits().activation.static_scale) check_input_scale(kind.names, projection);
    }
    if (layer_.expert_bias) {
      biases(global, Role::w13);
      biases(global, Role::w2);
    }
  }

  Slab must_find(const ExpertNames& names, const Whole& projection, std::string_view suffix,
                 const std::vector<std::int64_t>& shape, std::int64_t elements) const {
    Slab slab = names.find(projection.expert, projection.projection, suffix);
    const std::string name =
        in_quotes(names.name(projection.expert, projection.projection, suffix));
    if (slab.file == nullptr) {
      throw InputError(names.where(), "there is no tensor " + name,
                       config_.file + " says that there is");
    }
    std::int64_t count = 1;
    for (const std::int64_t size : slab.shape) count *= size;
    const TensorDtype dtype = slab.tensor->dtype;
    const bool real =
        dtype == TensorDtype::bf16 || dtype == TensorDtype::f16 || dtype == TensorDtype::f32;
    if (real && count == elements) return slab;
    throw InputError(slab.file->path().string(),
                     "tensor " + name + " is " + describe(dtype, slab.shape),
                     "BF16, F16 or " + describe(TensorDtype::f32, shape) + " is needed");
  }

  Slab input_scale(const ExpertNames& names, const Whole& projection) const {
    return must_find(names, projection, "input_scale", {1}, 1);
  }

  void check_input_scale(const ExpertNames& names, const Whole& projection) const {
    const Slab slab = input_scale(names, projection);
    const float scale = read_reals(slab).front();
    if (scale > 0 && std::isfinite(scale)) return;
    throw InputError(slab.file->path().string(),
                     "tensor " + in_quotes(slab.tensor->name) + " is " + std::to_string(scale),
                     "a positive number");
  }

  std::vector<Slab> biases(std::int64_t global, Role role) const {
    const ExpertNames& names = kind_of(global).names;
    std::vector<Slab> slabs;
    for (const Whole& projection : projections(global)) {
      if ((projection.projection == Projection::down) != (role == Role::w2)) continue;
      slabs.push_back(must_find(names, projection, names.fused() ? "_bias" : "bias",
                                {projection.rows}, projection.rows));
    }
    return slabs;
  }

  // Rows [begin, end) of this rank's w13 or w2. The rank is the first: its part of gate, of up and
  // of w2's columns are the first ones.
  Unpacked rows(std::int64_t expert, Role role, std::int64_t begin, std::int64_t end) const {
    const std::int64_t global = global_ids_[static_cast<std::size_t>(expert)];
    const auto& [names, packing] = kind_of(global);
    const auto parts = projections(global);
    const std::int64_t n = layer_.intermediate_size, k = layer_.hidden_size;
    if (role == Role::w2) return packing->read(parts.back(), {begin, end, n});
    if (interleaved()) return packing->read(parts.front(), {begin, end, k});
    Unpacked all;
    if (begin < n) append(all, packing->read(parts.front(), {begin, std::min(end, n), k}));
    if (end > n) {
      const std::int64_t up = names.fused() ? whole_size_ : 0;
      const Unpacked more = packing->read(names.fused() ? parts.front() : parts[1],
                                          {up + std::max(begin, n) - n, up + end - n, k});
      if (all.rows > 0 && all.group_of != more.group_of) {
        throw InputError(
            names.where(),
            "gate and up of expert " + std::to_string(global) + " have columns in different groups",
            "one g_idx serves both in a fused layer");
      }
      append(all, more);
    }
    return all;
  }

  const Checkpoint checkpoint_;
  const QuantizationConfig config_;
  const Layer layer_;
  const std::shared_ptr<const Scheme> scheme_;
  const std::int64_t routed_count_, whole_size_;
  const Kind routed_;
  std::optional<Kind> shared_;  // where the layer has one fused
  const std::vector<std::int64_t> global_ids_;
};

}  // namespace

std::optional<std::string> checkpoint_scheme_of(const fs::path& folder) {
  const QuantizationConfig config = read_config(folder);
  if (config.scheme.empty()) return std::nullopt;
  return config.scheme;
}

std::unique_ptr<CheckpointExperts> open_checkpoint(const CheckpointLayer& from, const Model& whole,
                                                   const Problem& problem) {
  return std::make_unique<Experts>(from, whole, problem);
}

}  // namespace moegauge
