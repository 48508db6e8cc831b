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
  std::size_t w13 = 0, w2 = 0, w13_scale = 0, w2_scale = 0, x_order = 0;
  std::size_t total() const { return w13 + w2 + w13_scale + w2_scale + x_order; }
};

ExpertBytes expert_bytes(const Problem& problem, const CudaScheme& scheme) {
  const MatrixShape w13 = weight_shape(problem.layer, Role::w13);
  const MatrixShape w2 = weight_shape(problem.layer, Role::w2);
  if (scheme.integers) {
    const std::size_t columns =
        scheme.integers->ordered ? static_cast<std::size_t>(problem.layer.hidden_size) : 0;
    return {.w13 = packed_bytes(*scheme.integers, w13),
            .w2 = packed_bytes(*scheme.integers, w2),
            .x_order = columns * sizeof(std::uint16_t)};
  }
  const MatrixBytes w13_bytes = problem.scheme->weight_bytes(w13);
  const MatrixBytes w2_bytes = problem.scheme->weight_bytes(w2);
  return {.w13 = w13_bytes.values,
          .w2 = w2_bytes.values,
          .w13_scale = w13_bytes.scales,
          .w2_scale = w2_bytes.scales};
}

WeightSet allocate(const ExpertBytes& bytes, std::size_t experts) {
  return {.w13 = Buffer(experts * bytes.w13),
          .w2 = Buffer(experts * bytes.w2),
          .w13_scale = Buffer(experts * bytes.w13_scale),
          .w2_scale = Buffer(experts * bytes.w2_scale),
          .x_order = Buffer(experts * bytes.x_order)};
}

// Buffers of a set, in the order of WeightSet.
std::array<const Buffer*, 5> buffers(const WeightSet& set) {
  return {&set.w13, &set.w2, &set.w13_scale, &set.w2_scale, &set.x_order};
}

// One expert on the host; what uploads read must stay until the stream is synchronised.
struct Host {
  MatrixStorage w13, w2;
  std::vector<std::byte> packed13 = {}, packed2 = {};
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
void pack(const IntFormat& format, Host& host) {
  const ConstMatrix w13 = std::as_const(host.w13).view(), w2 = std::as_const(host.w2).view();
  const std::vector<std::int32_t> order13 = order_of(format, w13, host.refused);
  const std::vector<std::int32_t> order2 = order_of(format, w2, host.refused);
  if (!host.refused.empty()) return;
  host.packed13.resize(packed_bytes(format, w13.shape));
  host.packed2.resize(packed_bytes(format, w2.shape));
  pack_integers(format, w13, {.rows = order2, .columns = order13}, host.packed13);
  pack_integers(format, w2, {.columns = order2}, host.packed2);
  host.x_order.assign(order13.begin(), order13.end());
}

void upload_expert(const Host& host, bool packed, std::size_t expert, const WeightSet& to,
                   const Stream& stream) {
  if (!host.refused.empty()) throw CudaFault({FaultKind::error, host.refused});
  const auto part = [&](std::span<const std::byte> from, const Buffer& buffer) {
    if (!from.empty()) buffer.upload(stream, from, expert * from.size());
  };
  part(packed ? std::span<const std::byte>(host.packed13) : host.w13.view().values, to.w13);
  part(packed ? std::span<const std::byte>(host.packed2) : host.w2.view().values, to.w2);
  part(std::as_bytes(std::span(host.x_order)), to.x_order);
  if (packed) return;
  part(host.w13.view().scales, to.w13_scale);
  part(host.w2.view().scales, to.w2_scale);
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
      if (scheme.integers) pack(*scheme.integers, host);
    });
    for (std::size_t i = 0; i < some; ++i) {
      upload_expert(hosts[i], scheme.integers.has_value(), first + i, result[0], stream);
    }
    stream.synchronize();  // the host's copies are used again
  }
  for (int set = 1; set < sets; ++set) {
    const WeightSet& copy = result.emplace_back(allocate(bytes, count));
    for (std::size_t i = 0; i < buffers(copy).size(); ++i) {
      const Buffer &to = *buffers(copy)[i], &from = *buffers(result[0])[i];
      if (from.get() != 0) to.copy_from(stream, from);
    }
  }
  stream.synchronize();
  return result;
}

}  // namespace moegauge::cuda
