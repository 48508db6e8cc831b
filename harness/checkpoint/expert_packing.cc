#include "harness/checkpoint/expert_packing.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/json/nearest.h"
#include "reference/base/input_error.h"
#include "reference/base/integers.h"

namespace moegauge {
namespace {

using Shape = std::vector<std::int64_t>;
using Dtypes = std::vector<TensorDtype>;

const Dtypes kReal = {TensorDtype::bf16, TensorDtype::f16, TensorDtype::f32};

std::string forms(const Dtypes& dtypes, const Shape& shape) {
  std::string text;
  for (std::size_t i = 0; i + 1 < dtypes.size(); ++i) {
    text += std::string(to_string(dtypes[i])) + " or ";
  }
  return text + describe(dtypes.back(), shape);
}

// Looks tensors up and holds them to what they must be.
class Tensors {
 public:
  Tensors(const ExpertNames& names, const QuantizationConfig& config)
      : names_(names), config_(config) {}

  // `shape` as it must be; axes of 1 at the end may be missing.
  Slab require(const Whole& whole, std::string_view suffix, const Dtypes& dtypes,
               const Shape& shape) const {
    const Slab slab = names_.find(whole.expert, whole.projection, suffix);
    if (slab.file == nullptr) {
      throw InputError(
          names_.where(),
          "there is no tensor " + in_quotes(names_.name(whole.expert, whole.projection, suffix)),
          says() + ", which has it as " + forms(dtypes, shape));
    }
    const bool right_dtype = std::ranges::count(dtypes, slab.tensor->dtype) > 0;
    if (!right_dtype || without_ones(slab.shape) != without_ones(shape)) {
      fail(slab, "is " + describe(slab.tensor->dtype, slab.shape), forms(dtypes, shape));
    }
    Slab shaped = slab;
    shaped.shape = shape;
    return shaped;
  }

  Slab optional(const Whole& whole, std::string_view suffix, const Dtypes& dtypes,
                const Shape& shape) const {
    if (names_.find(whole.expert, whole.projection, suffix).file == nullptr) return {};
    return require(whole, suffix, dtypes, shape);
  }

  [[noreturn]] void fail(const Slab& slab, const std::string& wrong,
                         const std::string& right) const {
    throw InputError(slab.file->path().string(),
                     "tensor " + in_quotes(slab.tensor->name) + " " + wrong,
                     says() + ", which needs " + right);
  }

  bool fused() const { return names_.fused(); }
  OperandTraits weight() const { return config_.made->traits().weight; }

 private:
  std::string says() const {
    return config_.file + " says " +
           (config_.scheme.empty() ? "that weights are not quantised" : config_.scheme);
  }
  static Shape without_ones(Shape shape) {
    while (!shape.empty() && shape.back() == 1) shape.pop_back();
    return shape;
  }

  const ExpertNames& names_;
  const QuantizationConfig& config_;
};

class PlainPacking final : public ExpertPacking {
 public:
  PlainPacking(const Tensors& tensors, TensorDtype dtype) : tensors_(tensors), dtype_(dtype) {}
  void check(const Whole& whole) const override { weight(whole); }
  Unpacked read(const Whole& whole, const Extent& extent) const override {
    return read_plain(weight(whole), tensors_.fused(), extent);
  }
  std::optional<TensorDtype> originals() const override { return dtype_; }

 private:
  // Fused experts are stored as their modelling code multiplies, x W.
  Slab weight(const Whole& whole) const {
    if (tensors_.fused()) return tensors_.require(whole, "", kReal, {whole.cols, whole.rows});
    return tensors_.require(whole, "weight", kReal, {whole.rows, whole.cols});
  }

  const Tensors tensors_;
  const TensorDtype dtype_;
};

// E4M3 or int8 with fp32 scales per tensor, channel or block.
class BytePacking final : public ExpertPacking {
 public:
  BytePacking(const Tensors& tensors, std::string_view scale)
      : tensors_(tensors), scale_(scale), unit_(tensors.weight().unit) {}
  // Scales are compared where a unit of the scheme gets the larger of two.
  void check(const Whole& whole) const override {
    weight(whole);
    const Slab slab = scale(whole);
    const std::int64_t count = slab.shape[0] * slab.shape[1];
    const SlabBytes bytes(slab);
    for (std::int64_t i = 0; i < count; ++i) {
      const float value = bytes.real(i);
      if (value >= 0 && std::isfinite(value)) continue;
      tensors_.fail(slab,
                    "holds the scale " + std::to_string(value) + " at element " + std::to_string(i),
                    "finite scales that are not negative");
    }
  }
  Unpacked read(const Whole& whole, const Extent& extent) const override {
    return read_bytes(weight(whole), scale(whole), unit_, extent);
  }

 private:
  Slab weight(const Whole& whole) const {
    const bool integer = tensors_.weight().element == Element::int8;
    return tensors_.require(whole, "weight", {integer ? TensorDtype::i8 : TensorDtype::f8_e4m3},
                            {whole.rows, whole.cols});
  }
  Slab scale(const Whole& whole) const {
    const auto units = [](std::int64_t size, std::int64_t unit) {
      return unit == 0 ? 1 : ceil_div(size, unit);
    };
    return tensors_.require(whole, scale_, kReal,
                            {units(whole.rows, unit_.rows), units(whole.cols, unit_.cols)});
  }

  const Tensors tensors_;
  const std::string scale_;
  const ScaleUnit unit_;
};

// What the packings of group-quantised integers share.
class GroupPacking : public ExpertPacking {
 public:
  explicit GroupPacking(const Tensors& tensors)
      : tensors_(tensors),
        weight_(tensors.weight()),
        groups_{.bits = weight_.element == Element::int4 ? 4 : 8, .group = weight_.unit.cols} {}

 protected:
  std::int64_t per_word() const { return 32 / groups_.bits; }
  std::int64_t count(const Whole& whole) const {
    return groups_.group == 0 ? 1 : ceil_div(whole.cols, groups_.group);
  }

  Slab group_index(const Whole& whole, std::string_view suffix) const {
    if (!weight_.group_index) return {};
    return tensors_.require(whole, suffix, {TensorDtype::i32}, {whole.cols});
  }
  // Every entry a group; where config.json knows of no order, the groups one after the other.
  void check_group_index(const Whole& whole, std::string_view suffix) const {
    const Slab slab = tensors_.optional(whole, suffix, {TensorDtype::i32}, {whole.cols});
    if (slab.file == nullptr) return;
    const SlabBytes bytes(slab);
    for (std::int64_t col = 0; col < whole.cols; ++col) {
      const auto group = bytes.at<std::int32_t>(col);
      const std::int64_t in_order = groups_.group == 0 ? 0 : col / groups_.group;
      const bool right =
          weight_.group_index ? group >= 0 && group < count(whole) : group == in_order;
      if (right) continue;
      tensors_.fail(slab, "holds " + std::to_string(group) + " at [" + std::to_string(col) + "]",
                    weight_.group_index ? "0 to " + std::to_string(count(whole) - 1)
                                        : "groups in the order of their columns");
    }
  }
  // Zero points where the scheme has none: those of the middle.
  void check_zeros(const Slab& slab, const Unpacked& rows) const {
    const int middle = 1 << (groups_.bits - 1);
    for (const std::uint8_t zero : rows.zeros) {
      if (zero == middle) continue;
      tensors_.fail(slab, "holds the zero point " + std::to_string(zero),
                    "zero points of " + std::to_string(middle) + " only");
    }
  }

  const Tensors tensors_;
  const OperandTraits weight_;
  const Groups groups_;
};

class CompressedPacking final : public GroupPacking {
 public:
  using GroupPacking::GroupPacking;
  void check(const Whole& whole) const override {
    slabs(whole);
    check_group_index(whole, "weight_g_idx");
  }
  Unpacked read(const Whole& whole, const Extent& extent) const override {
    return read_compressed(slabs(whole), groups_, extent);
  }

 private:
  CompressedSlabs slabs(const Whole& whole) const {
    CompressedSlabs slabs;
    slabs.weight = tensors_.require(whole, "weight_packed", {TensorDtype::i32},
                                    {whole.rows, ceil_div(whole.cols, per_word())});
    slabs.scale = tensors_.require(whole, "weight_scale", kReal, {whole.rows, count(whole)});
    if (weight_.zero_points) {
      slabs.zero_point = tensors_.require(whole, "weight_zero_point", {TensorDtype::i32},
                                          {ceil_div(whole.rows, per_word()), count(whole)});
    } else if (const Slab given =
                   tensors_.optional(whole, "weight_zero_point", {TensorDtype::i32},
                                     {ceil_div(whole.rows, per_word()), count(whole)});
               given.file != nullptr) {
      tensors_.fail(given, "is there", "none: weights are symmetric");
    }
    slabs.group_index = group_index(whole, "weight_g_idx");
    return slabs;
  }
};

class GptqPacking final : public GroupPacking {
 public:
  GptqPacking(const Tensors& tensors, bool zeros_less_one)
      : GroupPacking(tensors), zeros_less_one_(zeros_less_one) {}
  void check(const Whole& whole) const override {
    const GptqSlabs all = slabs(whole);
    check_group_index(whole, "g_idx");
    if (weight_.zero_points) return;
    check_zeros(all.zeros, read_gptq(all, groups_, {0, whole.rows, whole.cols, false}));
  }
  Unpacked read(const Whole& whole, const Extent& extent) const override {
    Unpacked rows = read_gptq(slabs(whole), groups_, extent);
    if (!weight_.zero_points) rows.zeros.clear();
    return rows;
  }

 private:
  GptqSlabs slabs(const Whole& whole) const {
    return {.weight = tensors_.require(whole, "qweight", {TensorDtype::i32},
                                       {ceil_div(whole.cols, per_word()), whole.rows}),
            .zeros = tensors_.require(whole, "qzeros", {TensorDtype::i32},
                                      {count(whole), ceil_div(whole.rows, per_word())}),
            .scale = tensors_.require(whole, "scales", kReal, {count(whole), whole.rows}),
            .group_index = group_index(whole, "g_idx"),
            .zeros_less_one = zeros_less_one_};
  }
  const bool zeros_less_one_;
};

class AwqPacking final : public GroupPacking {
 public:
  using GroupPacking::GroupPacking;
  void check(const Whole& whole) const override {
    const AwqSlabs all = slabs(whole);
    if (!weight_.zero_points)
      check_zeros(all.zeros, read_awq(all, groups_, {0, whole.rows, whole.cols, false}));
  }
  Unpacked read(const Whole& whole, const Extent& extent) const override {
    Unpacked rows = read_awq(slabs(whole), groups_, extent);
    if (!weight_.zero_points) rows.zeros.clear();
    return rows;
  }

 private:
  AwqSlabs slabs(const Whole& whole) const {
    const std::int64_t words = ceil_div(whole.rows, per_word());
    return {.weight = tensors_.require(whole, "qweight", {TensorDtype::i32}, {whole.cols, words}),
            .zeros = tensors_.require(whole, "qzeros", {TensorDtype::i32}, {count(whole), words}),
            .scale = tensors_.require(whole, "scales", kReal, {count(whole), whole.rows})};
  }
};

class Mxfp4Packing final : public ExpertPacking {
 public:
  explicit Mxfp4Packing(const Tensors& tensors) : tensors_(tensors) {}
  void check(const Whole& whole) const override {
    blocks(whole);
    scales(whole);
  }
  Unpacked read(const Whole& whole, const Extent& extent) const override {
    return read_mxfp4(blocks(whole), scales(whole), extent);
  }

 private:
  static constexpr std::int64_t kGroup = 32;
  Slab blocks(const Whole& whole) const {
    return tensors_.require(whole, "_blocks", {TensorDtype::u8},
                            {whole.rows, ceil_div(whole.cols, kGroup), kGroup / 2});
  }
  Slab scales(const Whole& whole) const {
    return tensors_.require(whole, "_scales", {TensorDtype::u8, TensorDtype::f8_e8m0},
                            {whole.rows, ceil_div(whole.cols, kGroup)});
  }
  const Tensors tensors_;
};

bool is_real(TensorDtype dtype) { return std::ranges::count(kReal, dtype) > 0; }

// Whether the scheme that config.json picks is of a packing's kind.
bool agrees(const QuantizationConfig& config, Element element, ScaleKind scale) {
  if (config.made == nullptr) return false;
  const OperandTraits weight = config.made->traits().weight;
  return weight.element == element && weight.scale == scale;
}

}  // namespace

std::unique_ptr<ExpertPacking> find_packing(const ExpertNames& names,
                                            const QuantizationConfig& config) {
  const Tensors tensors(names, config);
  const auto find = [&](std::string_view suffix) {
    return names.find(0, Projection::gate, suffix);
  };
  const auto grouped = [&] {
    return agrees(config, Element::int4, ScaleKind::activation_dtype) ||
           agrees(config, Element::int8, ScaleKind::activation_dtype);
  };
  Slab found;
  if (found = find("_blocks"); found.file != nullptr) {
    if (agrees(config, Element::e2m1, ScaleKind::e8m0)) {
      return std::make_unique<Mxfp4Packing>(tensors);
    }
  } else if (found = find("weight_packed"); found.file != nullptr) {
    if (grouped() && config.method == "compressed-tensors") {
      return std::make_unique<CompressedPacking>(tensors);
    }
  } else if (found = find("qweight"); found.file != nullptr) {
    if (grouped() && config.method == "gptq") {
      return std::make_unique<GptqPacking>(tensors, config.zeros_less_one);
    }
    if (grouped() && config.method == "awq") return std::make_unique<AwqPacking>(tensors);
  } else {
    found = find(names.fused() ? "" : "weight");
    const TensorDtype dtype = found.tensor->dtype;
    if (is_real(dtype) && config.scheme.empty()) {
      return std::make_unique<PlainPacking>(tensors, dtype);
    }
    const bool bytes =
        (dtype == TensorDtype::f8_e4m3 && agrees(config, Element::e4m3fn, ScaleKind::fp32)) ||
        (dtype == TensorDtype::i8 && agrees(config, Element::int8, ScaleKind::fp32));
    if (bytes && !names.fused()) {
      const bool inverse = find("weight_scale_inv").file != nullptr;
      return std::make_unique<BytePacking>(tensors, inverse ? "weight_scale_inv" : "weight_scale");
    }
  }
  throw InputError(
      config.file,
      (config.scheme.empty() ? "it says that weights are not quantised"
                             : "it says " + config.scheme + " (" + config.method + ")") +
          " and tensor " + in_quotes(found.tensor->name) + " of " + found.file->path().string() +
          " is " + describe(*found.tensor),
      "they must agree");
}

}  // namespace moegauge
