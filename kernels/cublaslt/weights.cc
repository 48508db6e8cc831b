#include "kernels/cublaslt/weights.h"

#include <algorithm>
#include <cstring>

#include "reference/base/thread_pool.h"
#include "reference/schemes/matrix_storage.h"

namespace moegauge::cublaslt {

using cuda::Buffer;
using cuda::Stream;

namespace {

// Of one expert's matrix, in the order of MatrixBuffers::all.
using Parts = std::array<std::size_t, 5>;

Parts parts_of(const Problem& problem, const LibraryScheme& scheme, Role role) {
  const MatrixShape shape = weight_shape(problem.layer, role);
  const MatrixBytes bytes = problem.scheme->weight_bytes(shape);
  std::size_t scales = bytes.scales;
  if (scheme.scaling == Scaling::blocks) {
    scales = static_cast<std::size_t>((shape.rows + 127) / 128 * scale_pitch(shape.cols)) * 4;
  }
  if (scheme.scaling == Scaling::tensor) scales = 4 * sizeof(float);
  const std::size_t bias =
      problem.layer.expert_bias ? static_cast<std::size_t>(shape.rows) * sizeof(float) : 0;
  return {bytes.values, scales, bytes.zero_points, bytes.group_index, bias};
}

MatrixBuffers allocate(const Parts& parts, std::size_t experts) {
  return {.values = Buffer(parts[0] * experts),
          .scales = Buffer(parts[1] * experts),
          .zero_points = Buffer(parts[2] * experts),
          .group_index = Buffer(parts[3] * experts),
          .bias = Buffer(parts[4] * experts)};
}

// One expert's matrix on the host; what uploads read must stay until the stream is synchronised.
struct Host {
  MatrixStorage storage;
  std::vector<float> own_scales = {}, bias = {};

  void fill(const Problem& problem, const LibraryScheme& scheme, const ExpertSource& experts,
            std::int64_t expert) {
    const Matrix matrix = storage.view();
    experts.quantized(expert, matrix);
    if (scheme.scaling == Scaling::blocks) {
      own_scales = pad_block_scales(matrix.scales, matrix.shape.cols);
    }
    if (scheme.scaling == Scaling::tensor) own_scales = repeat_scale(matrix.scales);
    if (!problem.layer.expert_bias) return;
    // A rank that does not add w2's bias adds zeros.
    bias.assign(static_cast<std::size_t>(matrix.shape.rows), 0.0f);
    if (matrix.shape.role == Role::w13 || problem.layer.adds_w2_bias) {
      bias = experts.bias(expert, matrix.shape.role);
    }
  }

  void upload(std::size_t expert, const MatrixBuffers& to, const Stream& stream) const {
    const ConstMatrix matrix = storage.view();
    const auto part = [&](std::span<const std::byte> from, const Buffer& buffer) {
      if (!from.empty()) buffer.upload(stream, from, expert * from.size());
    };
    part(matrix.values, to.values);
    part(own_scales.empty() ? matrix.scales : std::as_bytes(std::span(own_scales)), to.scales);
    part(matrix.zero_points, to.zero_points);
    part(matrix.group_index, to.group_index);
    part(std::as_bytes(std::span(bias)), to.bias);
  }
};

struct HostExpert {
  Host w13, w2;
};

void copy(const MatrixBuffers& from, const MatrixBuffers& to, const Stream& stream) {
  for (std::size_t i = 0; i < to.all().size(); ++i) {
    if (from.all()[i]->get() != 0) to.all()[i]->copy_from(stream, *from.all()[i]);
  }
}

}  // namespace

std::int64_t scale_pitch(std::int64_t columns) { return (columns + 511) / 512 * 4; }

std::vector<float> pad_block_scales(std::span<const std::byte> scales, std::int64_t columns) {
  const auto own = static_cast<std::size_t>((columns + 127) / 128);
  const auto pitch = static_cast<std::size_t>(scale_pitch(columns));
  const std::size_t rows = scales.size() / sizeof(float) / own;
  std::vector<float> padded(rows * pitch, 0.0f);
  for (std::size_t row = 0; row < rows; ++row) {
    std::memcpy(&padded[row * pitch], scales.data() + row * own * sizeof(float),
                own * sizeof(float));
  }
  return padded;
}

std::vector<float> repeat_scale(std::span<const std::byte> scale) {
  float value = 0;
  std::memcpy(&value, scale.data(), sizeof value);
  return {value, value, value, value};
}

std::int64_t weight_set_bytes(const Problem& problem, const LibraryScheme& scheme) {
  std::size_t bytes = 0;
  for (const Role role : {Role::w13, Role::w2}) {
    for (const std::size_t part : parts_of(problem, scheme, role)) bytes += part;
  }
  return problem.layer.local_experts() * static_cast<std::int64_t>(bytes);
}

std::vector<WeightSet> upload_weights(const Problem& problem, const LibraryScheme& scheme,
                                      const ExpertSource& experts, int sets, const Stream& stream) {
  const auto count = static_cast<std::size_t>(problem.layer.local_experts());
  const Parts parts13 = parts_of(problem, scheme, Role::w13),
              parts2 = parts_of(problem, scheme, Role::w2);
  std::vector<WeightSet> result;
  for (int set = 0; set < sets; ++set) {
    result.push_back({.w13 = allocate(parts13, count), .w2 = allocate(parts2, count)});
  }
  const WeightSet& first = result.front();
  // Making an expert takes far longer than sending it: as many at once as there are processors.
  ThreadPool pool(ThreadPool::usable_processors());
  std::vector<HostExpert> hosts;
  for (std::size_t i = 0; i < std::min(static_cast<std::size_t>(pool.threads()), count); ++i) {
    hosts.push_back({.w13 = {{*problem.scheme, weight_shape(problem.layer, Role::w13)}},
                     .w2 = {{*problem.scheme, weight_shape(problem.layer, Role::w2)}}});
  }
  for (std::size_t begin = 0; begin < count; begin += hosts.size()) {
    const std::size_t some = std::min(hosts.size(), count - begin);
    pool.parallel_for(static_cast<std::int64_t>(some), [&](std::int64_t i) {
      HostExpert& host = hosts[static_cast<std::size_t>(i)];
      host.w13.fill(problem, scheme, experts, static_cast<std::int64_t>(begin) + i);
      host.w2.fill(problem, scheme, experts, static_cast<std::int64_t>(begin) + i);
    });
    for (std::size_t i = 0; i < some; ++i) {
      hosts[i].w13.upload(begin + i, first.w13, stream);
      hosts[i].w2.upload(begin + i, first.w2, stream);
    }
    stream.synchronize();  // the host's copies are used again
  }
  const bool calibrated = problem.scheme->traits().activation.static_scale;
  const std::array scale = {calibrated ? experts.activation_scale(Role::w13) : 0.0f,
                            calibrated ? experts.activation_scale(Role::w2) : 0.0f};
  for (WeightSet& set : result) {
    if (calibrated) {
      set.tensor_scale = Buffer(sizeof scale);
      set.tensor_scale.upload(stream, std::as_bytes(std::span(scale)));
    }
    if (&set == &first) continue;
    copy(first.w13, set.w13, stream);
    copy(first.w2, set.w2, stream);
  }
  stream.synchronize();
  return result;
}

}  // namespace moegauge::cublaslt
