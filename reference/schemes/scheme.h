// The scheme seam: number formats and scale granularity of one way to quantise a layer. One file
// per scheme family defines a Scheme and is named once in the list of CMakeLists.txt; nothing else
// compares schemes by name.
//
// The canonical storage defined here (row-major values, scales beside them) is what checkpoints
// hold; a backend may repack it when it loads a layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/layer.h"

namespace moegauge {

enum class Role : std::uint8_t { w13, w2 };

// One expert's weight matrix, y = W x: rows outputs, cols the contracted dimension.
struct MatrixShape {
  Role role = Role::w13;
  std::int64_t rows = 0;  // w13: 2N, w2: K
  std::int64_t cols = 0;  // w13: K,  w2: N
  // Of the layer: integer schemes keep their scales in it.
  Dtype dtype = Dtype::bf16;
  // Which rows of w13 are gate and which are up.
  GateUpOrder gate_up_order = GateUpOrder::concatenated;
  // Columns before tensor parallelism cut them; 0: cols. The first are this rank's.
  std::int64_t whole_cols = 0;
};
// The shape of one expert's w13 or w2 in `layer`.
MatrixShape weight_shape(const Layer& layer, Role role);

// Bytes of each part of one quantised matrix; 0 where the scheme has no such part.
struct MatrixBytes {
  std::size_t values = 0;
  std::size_t scales = 0;
  std::size_t zero_points = 0;
  std::size_t group_index = 0;  // g_idx, int32 [cols]
  std::size_t total() const { return values + scales + zero_points + group_index; }
};

template <typename Byte>
struct BasicMatrix {
  MatrixShape shape = {};
  std::span<Byte> values = {}, scales = {}, zero_points = {}, group_index = {};
};
using Matrix = BasicMatrix<std::byte>;
using ConstMatrix = BasicMatrix<const std::byte>;

// How one operand is held, for whoever must judge whether to serve it, or generate what quantises
// without loss. Backends decide by these and never by a scheme's name.
enum class Element : std::uint8_t { activation_dtype, e4m3fn, e4m3fnuz, e2m1, int8, int4 };
enum class ScaleKind : std::uint8_t { none, fp32, e8m0, activation_dtype };

// The elements that share one scale; 0 stands for the operand's whole extent.
struct ScaleUnit {
  std::int64_t rows = 0;
  std::int64_t cols = 0;  // along the contracted dimension
  friend bool operator==(const ScaleUnit&, const ScaleUnit&) = default;
};

// How a unit's scale follows from its largest finite magnitude, amax.
struct ScaleRule {
  enum class Kind : std::uint8_t {
    linear,              // max(max(amax, amax_floor) / maximum, scale_floor), in fp32
    power_of_two_ceil,   // 2^ceil(log2(amax / maximum)), within E8M0's range
    power_of_two_floor,  // 2^floor(log2(amax)), within E8M0's range
  };
  Kind kind = Kind::linear;
  float amax_floor = 0, scale_floor = 0;
};

struct OperandTraits {
  Element element = Element::activation_dtype;
  ScaleKind scale = ScaleKind::none;
  ScaleUnit unit = {};
  // Values of the element type to which a unit's extremes are mapped: a unit that holds
  // lowest * 2^k and highest * 2^k, and between them only integer multiples of 2^k that the element
  // type holds, is quantised without loss. Both 0 where there is no scale. With group_index it is
  // not known beforehand which columns form a unit: a row of nothing but +-highest * 2^k is without
  // loss if there are no zero points.
  double lowest = 0, highest = 0;
  bool zero_points = false;
  bool group_index = false;   // columns of one group are scattered (act_order)
  bool static_scale = false;  // calibrated, not computed from the data (activations)
  // Of activations that are quantised on the fly: from amax to `highest`.
  ScaleRule rule = {};
};

// Scales of one row of a weight matrix: those of its columns, or where a group index may name any
// group, those of the whole matrix.
std::int64_t scales_of_row(const OperandTraits& weight, const MatrixShape& shape);

struct SchemeTraits {
  OperandTraits weight, activation;
  // The one activation dtype that the scheme can hold; none: any.
  std::optional<Dtype> only = std::nullopt;
};

// Activations on their way into a GEMM: x into the first, the activation function's output into the
// second.
struct ActivationShape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  Dtype dtype = Dtype::bf16;  // of the layer
  float static_scale = 0;     // read only by schemes with a static activation scale
};

// The error limits that ship with a scheme (docs/method.md says how each was obtained).
struct ErrorLimits {
  double relative_l2 = 0;  // of error.implementation, like the next
  double worst_token = 0;
  // What a kernel adds must drown in what the format costs, where that is more than
  // `total_applies_above`: error.total.relative_l2 <= total_factor *
  // error.quantization.relative_l2.
  double total_factor = 1.03;
  double total_applies_above = 0.01;
  // In place of relative_l2 where fewer than 16 rows are compared, of which one whose output nearly
  // cancels may be most of the whole; none: the same.
  std::optional<double> few_rows_l2 = std::nullopt;

  // Of `rows` compared rows.
  ErrorLimits over(std::int64_t rows) const {
    ErrorLimits limits = *this;
    if (rows < 16) limits.relative_l2 = few_rows_l2.value_or(relative_l2);
    return limits;
  }

  std::optional<double> total(double quantization) const {
    if (!(quantization > total_applies_above)) return std::nullopt;
    return total_factor * quantization;
  }
};

class Scheme {
 public:
  virtual ~Scheme() = default;

  // Canonical name with its options, as suites and records spell it: "fp8_block", "w4a16_g128".
  virtual std::string name() const = 0;
  virtual SchemeTraits traits() const = 0;
  // What the metadata of tuned-config files calls it: one name for all that the same kernels serve
  // alike on a device, whose flavour of FP8 is its own.
  virtual std::string config_scheme() const { return name(); }
  // `dtype=` token of tuned-config file names; empty for bf16 and fp16.
  virtual std::string_view config_dtype() const = 0;
  // `block_shape=` of tuned-config file names, {n, k}; none for schemes without blocks.
  virtual std::optional<std::pair<int, int>> config_block_shape() const = 0;
  // Hold `over` the rows that are compared.
  virtual ErrorLimits error_limits(Dtype dtype, bool reduced_accumulation) const = 0;

  virtual MatrixBytes weight_bytes(const MatrixShape& shape) const = 0;
  // Quantises `w` ([rows, cols], values of the layer's dtype held as fp32) into `out`, whose spans
  // have the sizes of weight_bytes(shape).
  virtual void quantize_weight(std::span<const float> w, const Matrix& out) const = 0;
  // Rows [begin, end) as exact doubles, row-major, into `out` [(end - begin), cols].
  virtual void dequantize_weight(const ConstMatrix& w, std::int64_t begin, std::int64_t end,
                                 std::span<double> out) const = 0;
  // What a kernel sees of activations: `x` [rows, cols] quantised and dequantised, exact doubles.
  // All rows of one call at once, because per-tensor scales depend on all of them.
  virtual void emulate_activation(std::span<const float> x, const ActivationShape& shape,
                                  std::span<double> out) const = 0;
};

// The schemes known, by name without options, in the order in which `list schemes` shows them.
std::span<const std::string_view> scheme_names();
// The options that a name of scheme_names() takes, as help text: "[_fnuz]"; empty if none.
std::string_view scheme_options(std::string_view name);
// Parses "family[_option]*"; nullptr where no such scheme exists.
std::unique_ptr<const Scheme> make_scheme(std::string_view name);

// Gives one expert's weights when asked, so that nobody needs all experts in full precision.
// Implementations are safe to call from several threads.
class ExpertSource {
 public:
  virtual ~ExpertSource() = default;
  // The quantised operand in canonical storage, into buffers of weight_bytes(out.shape).
  virtual void quantized(std::int64_t local_expert, const Matrix& out) const = 0;
  // The values before quantisation as fp32, rows [begin, end) of the matrix; for a checkpoint, the
  // dequantised weights.
  virtual void original(std::int64_t local_expert, const MatrixShape& shape, std::int64_t begin,
                        std::int64_t end, std::span<float> out) const = 0;
  // The calibrated scale of the activations that enter the GEMM of `role`, the same for all
  // experts; asked only for schemes with a static activation scale.
  virtual float activation_scale(Role /*role*/) const { return 0; }
  // fp32 bias of w13 [2N] or w2 [K]; empty where layer.expert_bias is false.
  virtual std::vector<float> bias(std::int64_t local_expert, Role role) const = 0;
};

}  // namespace moegauge
