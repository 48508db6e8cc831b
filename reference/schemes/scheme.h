// The scheme seam: number formats and scale granularity of one way to quantise a layer. One file
// per scheme family defines a Scheme and is named once in schemes.cc; nothing else in the project
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
#include <vector>

#include "reference/layer.h"

namespace moegauge {

enum class Role : std::uint8_t { w13, w2 };

// One expert's weight matrix, y = W x: rows outputs, cols the contracted dimension.
struct MatrixShape {
  Role role = Role::w13;
  std::int64_t rows = 0;  // w13: 2N, w2: K
  std::int64_t cols = 0;  // w13: K,  w2: N
};

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
  std::span<Byte> values, scales, zero_points, group_index;
};
using Matrix = BasicMatrix<std::byte>;
using ConstMatrix = BasicMatrix<const std::byte>;

// The error limits that ship with a scheme (docs/method.md says how each was obtained).
struct ErrorLimits {
  double relative_l2 = 0;
  double worst_token = 0;
};

class Scheme {
 public:
  virtual ~Scheme() = default;

  // Canonical name with its options, as suites and records spell it: "fp8_block", "w4a16_g128".
  virtual std::string name() const = 0;
  // `dtype=` token of tuned-config file names; empty for bf16 and fp16.
  virtual std::string_view config_dtype() const = 0;
  // `block_shape=` of tuned-config file names, {n, k}; none for schemes without blocks.
  virtual std::optional<std::pair<int, int>> config_block_shape() const = 0;
  virtual ErrorLimits error_limits(Dtype dtype, bool reduced_accumulation) const = 0;

  virtual MatrixBytes weight_bytes(const MatrixShape& shape) const = 0;
  // Quantises `w` ([rows, cols], values of the layer's dtype held as fp32) into `out`, whose spans
  // have the sizes of weight_bytes(shape).
  virtual void quantize_weight(std::span<const float> w, const Matrix& out) const = 0;
  // Rows [begin, end) as exact doubles, row-major, into `out` [(end - begin), cols].
  virtual void dequantize_weight(const ConstMatrix& w, std::int64_t begin, std::int64_t end,
                                 std::span<double> out) const = 0;
  // What a kernel sees of activations: `x` [rows, cols] quantised and dequantised, exact doubles.
  virtual void emulate_activation(std::span<const float> x, std::int64_t rows, std::int64_t cols,
                                  std::span<double> out) const = 0;
  // Elements of weight and of activation in one scale unit along the contracted dimension, for the
  // `exact` and `degenerate` inputs; 0 where there is no scale.
  virtual std::int64_t scale_unit(Role role) const = 0;
};

// The schemes known, by name without options, in the order in which `list schemes` shows them.
std::span<const std::string_view> scheme_names();
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
  // fp32 bias of w13 [2N] or w2 [K]; empty where layer.expert_bias is false.
  virtual std::vector<float> bias(std::int64_t local_expert, Role role) const = 0;
};

}  // namespace moegauge
