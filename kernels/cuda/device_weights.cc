#include "kernels/cuda/device_weights.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "kernels/cuda/int_packing.h"
#include "reference/base/thread_pool.h"
#include "reference/schemes/matrix_storage.h"

namespace moegauge::cuda {
namespace {

// Bytes of one expert's share of a set.
struct ExpertBytes {
  std::size_t w13 = 0, w2 = 0, w13_scale = 0, w2_scale = 0, w13_bias = 0, w2_bias = 0, x_order = 0;
  std::size_t total() const {
    return w13 + w2 + w13_scale + w2_scale + w13_bias + w2_bias + x_order;
  }
};

ExpertBytes weight_bytes(const Problem& problem, const CudaScheme& scheme) {
  const MatrixShape w13 = weight_shape(problem.layer, Role::w13);
  const MatrixShape w2 = weight_shape(problem.layer, Role::w2);
  if (scheme.integers) {
    const std::size_t columns =
        scheme.integers->ordered ? static_cast<std::size_t>(problem.layer.hidden_size) : 0;
    return {.w13 = packed_bytes(*scheme.integers, w13),
            .w2 = packed_bytes(*scheme.integers, w2),
            .x_order = columns * sizeof(std::uint16_t)};
  }
  return {.w13 = boxed_bytes(w13, scheme.element_bytes, scheme.scales),
          .w2 = boxed_bytes(w2, scheme.element_bytes, scheme.scales),
          .w13_scale = scale_count(scheme.scales, w13) * sizeof(float),
          .w2_scale = scale_count(scheme.scales, w2) * sizeof(float)};
}

ExpertBytes expert_bytes(const Problem& problem, const CudaScheme& scheme) {
  ExpertBytes bytes = weight_bytes(problem, scheme);
  if (problem.layer.expert_bias) {
    const auto size = [&](Role role) {
      return scale_count(WeightScales::channels, weight_shape(problem.layer, role)) * sizeof(float);
    };
    bytes.w13_bias = size(Role::w13);
    bytes.w2_bias = size(Role::w2);
  }
  return bytes;
}

WeightSet allocate(const ExpertBytes& bytes, std::size_t experts) {
  return {.w13 = Buffer(experts * bytes.w13),
          .w2 = Buffer(experts * bytes.w2),
          .w13_scale = Buffer(experts * bytes.w13_scale),
          .w2_scale = Buffer(experts * bytes.w2_scale),
          .w13_bias = Buffer(experts * bytes.w13_bias),
          .w2_bias = Buffer(experts * bytes.w2_bias),
          .x_order = Buffer(experts * bytes.x_order)};
}

// Buffers of a set, in the order of WeightSet.
std::array<const Buffer*, 8> buffers(const WeightSet& set) {
  return {&set.w13,      &set.w2,      &set.w13_scale,    &set.w2_scale,
          &set.w13_bias, &set.w2_bias, &set.tensor_scale, &set.x_order};
}

// One expert on the host; what uploads read must stay until the stream is synchronised.
struct Host {
  MatrixStorage w13, w2;
  std::vector<std::byte> packed13 = {}, packed2 = {};
  std::vector<float> scale13 = {}, scale2 = {}, bias13 = {}, bias2 = {};
  std::vector<std::uint16_t> x_order = {};
  std::string refused = {};  // why the expert cannot be packed
};

std::vector<std::int32_t> order_of(const IntFormat& format, const ConstMatrix& matrix,
                                   std::string& refused) {
  if (!format.ordered) return {};
  std::vector<std::int32_t> group_of(static_cast<std::size_t>(matrix.shape.cols));
  std::memcpy(group_of.data(), matrix.group_index.data(), group_of.size() * sizeof(std::int32_t));
  auto order = column_order(format, group_of);
  if (order) return std::move(*order);
  refused = order.error();
  return {};
}

// With act_order the columns of both matrices are stored group by group. x is gathered in the order
// of w13's; what w13 makes comes out in the order of w2's, because w13's rows are stored in it.
void pack_integer_expert(const IntFormat& format, Host& host) {
  const ConstMatrix w13 = std::as_const(host.w13).view(), w2 = std::as_const(host.w2).view();
  const std::vector<std::int32_t> order13 = order_of(format, w13, host.refused);
  const std::vector<std::int32_t> order2 = order_of(format, w2, host.refused);
  if (!host.refused.empty()) return;
  pack_integers(format, w13, {.rows = order2, .columns = order13}, host.packed13);
  pack_integers(format, w2, {.columns = order2}, host.packed2);
  host.x_order.assign(order13.begin(), order13.end());
}

void pack_expert(const CudaScheme& scheme, const ExpertBytes& bytes, Host& host) {
  host.packed13.resize(bytes.w13);
  host.packed2.resize(bytes.w2);
  if (scheme.integers) return pack_integer_expert(*scheme.integers, host);
  const ConstMatrix w13 = std::as_const(host.w13).view(), w2 = std::as_const(host.w2).view();
  host.scale13.resize(bytes.w13_scale / sizeof(float));
  host.scale2.resize(bytes.w2_scale / sizeof(float));
  pack_boxes(w13, scheme.element_bytes, scheme.scales, host.packed13);
  pack_boxes(w2, scheme.element_bytes, scheme.scales, host.packed2);
  pack_scales(scheme.scales, w13, host.scale13);
  pack_scales(scheme.scales, w2, host.scale2);
}

// A rank that does not add w2's bias adds zeros.
void pack_biases(const Problem& problem, const ExpertSource& experts, std::int64_t expert,
                 const ExpertBytes& bytes, Host& host) {
  host.bias13.resize(bytes.w13_bias / sizeof(float));
  host.bias2.resize(bytes.w2_bias / sizeof(float));
  if (!problem.layer.expert_bias) return;
  pack_channels(std::as_const(host.w13).view().shape, experts.bias(expert, Role::w13), host.bias13);
  if (problem.layer.adds_w2_bias) {
    pack_channels(std::as_const(host.w2).view().shape, experts.bias(expert, Role::w2), host.bias2);
  }
}

void upload_expert(const Host& host, std::size_t expert, const WeightSet& to,
                   const Stream& stream) {
  if (!host.refused.empty()) throw CudaFault({FaultKind::error, host.refused});
  const auto part = [&](const auto& from, const Buffer& buffer) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(from));
    if (!bytes.empty()) buffer.upload(stream, bytes, expert * bytes.size());
  };
  part(host.packed13, to.w13);
  part(host.packed2, to.w2);
  part(host.scale13, to.w13_scale);
  part(host.scale2, to.w2_scale);
  part(host.bias13, to.w13_bias);
  part(host.bias2, to.w2_bias);
  part(host.x_order, to.x_order);
}

}  // namespace

std::int64_t weight_set_bytes(const Problem& problem, const CudaScheme& scheme) {
  return problem.layer.local_experts() *
         static_cast<std::int64_t>(expert_bytes(problem, scheme).total());
}

std::vector<WeightSet> upload_weights(const Problem& problem, const CudaScheme& scheme,
                                      const ExpertSource& experts, int sets, const Stream& stream) {
  const ExpertBytes bytes = expert_bytes(problem, scheme);
  const auto count = static_cast<std::size_t>(problem.layer.local_experts());
  std::vector<WeightSet> result;
  result.push_back(allocate(bytes, count));
  // Making an expert takes far longer than sending it: as many at once as there are processors.
  ThreadPool pool(ThreadPool::usable_processors());
  const auto at_once = static_cast<std::size_t>(pool.threads());
  std::vector<Host> hosts;
  for (std::size_t i = 0; i < std::min(at_once, count); ++i) {
    hosts.push_back({.w13 = {*problem.scheme, weight_shape(problem.layer, Role::w13)},
                     .w2 = {*problem.scheme, weight_shape(problem.layer, Role::w2)}});
  }
  for (std::size_t first = 0; first < count; first += hosts.size()) {
    const std::size_t some = std::min(hosts.size(), count - first);
    pool.parallel_for(static_cast<std::int64_t>(some), [&](std::int64_t i) {
      Host& host = hosts[static_cast<std::size_t>(i)];
      experts.quantized(static_cast<std::int64_t>(first) + i, host.w13.view());
      experts.quantized(static_cast<std::int64_t>(first) + i, host.w2.view());
      pack_expert(scheme, bytes, host);
      pack_biases(problem, experts, static_cast<std::int64_t>(first) + i, bytes, host);
    });
    for (std::size_t i = 0; i < some; ++i) {
      upload_expert(hosts[i], first + i, result[0], stream);
    }
    stream.synchronize();  // the host's copies are used again
  }
  if (scheme.tensor_scale == TensorScale::given) {
    const std::array scale = {experts.activation_scale(Role::w13),
                              experts.activation_scale(Role::w2)};
    result[0].tensor_scale = Buffer(sizeof scale);
    result[0].tensor_scale.upload(stream, std::as_bytes(std::span(scale)));
    stream.synchronize();
  }
  for (int set = 1; set < sets; ++set) {
    WeightSet& copy = result.emplace_back(allocate(bytes, count));
    copy.tensor_scale = Buffer(result[0].tensor_scale.bytes());
    for (std::size_t i = 0; i < buffers(copy).size(); ++i) {
      const Buffer &to = *buffers(copy)[i], &from = *buffers(result[0])[i];
      if (from.get() != 0) to.copy_from(stream, from);
    }
  }
  stream.synchronize();
  return result;
}

}  // namespace moegauge::cuda
