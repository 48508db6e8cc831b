#include "kernels/cuda/device_weights.h"

#include <algorithm>

#include "reference/base/thread_pool.h"

namespace moegauge::cuda {
namespace {

WeightSet allocate(const MatrixBytes& w13, const MatrixBytes& w2, std::size_t experts) {
  return {.w13 = Buffer(experts * w13.values),
          .w2 = Buffer(experts * w2.values),
          .w13_scale = Buffer(experts * w13.scales),
          .w2_scale = Buffer(experts * w2.scales)};
}

// One expert's matrices on the host, w13 then w2.
struct HostExpert {
  std::vector<std::byte> w13, w2;
};

void quantize_into(const ExpertSource& source, std::int64_t expert, const MatrixShape& shape,
                   const MatrixBytes& bytes, std::vector<std::byte>& host) {
  host.resize(bytes.total());
  const std::span<std::byte> all(host);
  source.quantized(expert, {.shape = shape,
                            .values = all.first(bytes.values),
                            .scales = all.subspan(bytes.values, bytes.scales),
                            .zero_points = {},
                            .group_index = {}});
}

// `host` must stay until the stream is synchronised.
void upload_matrix(const std::vector<std::byte>& host, std::int64_t expert,
                   const MatrixBytes& bytes, const Buffer& values, const Buffer& scales,
                   const Stream& stream) {
  const std::span<const std::byte> all(host);
  const auto at = static_cast<std::size_t>(expert);
  values.upload(stream, all.first(bytes.values), at * bytes.values);
  if (bytes.scales == 0) return;
  scales.upload(stream, all.subspan(bytes.values, bytes.scales), at * bytes.scales);
}

}  // namespace

std::int64_t weight_set_bytes(const Problem& problem) {
  std::size_t bytes = 0;
  for (const Role role : {Role::w13, Role::w2}) {
    bytes += problem.scheme->weight_bytes(weight_shape(problem.layer, role)).total();
  }
  return problem.layer.local_experts() * static_cast<std::int64_t>(bytes);
}

std::vector<WeightSet> upload_weights(const Problem& problem, const ExpertSource& experts, int sets,
                                      const Stream& stream) {
  const MatrixShape w13 = weight_shape(problem.layer, Role::w13);
  const MatrixShape w2 = weight_shape(problem.layer, Role::w2);
  const MatrixBytes w13_bytes = problem.scheme->weight_bytes(w13);
  const MatrixBytes w2_bytes = problem.scheme->weight_bytes(w2);
  const std::int64_t count = problem.layer.local_experts();
  std::vector<WeightSet> result;
  result.push_back(allocate(w13_bytes, w2_bytes, static_cast<std::size_t>(count)));
  // Making an expert takes far longer than sending it: as many at once as there are processors.
  ThreadPool pool(ThreadPool::usable_processors());
  std::vector<HostExpert> hosts(static_cast<std::size_t>(pool.threads()));
  for (std::int64_t first = 0; first < count; first += pool.threads()) {
    const std::int64_t some = std::min<std::int64_t>(pool.threads(), count - first);
    pool.parallel_for(some, [&](std::int64_t i) {
      HostExpert& host = hosts[static_cast<std::size_t>(i)];
      quantize_into(experts, first + i, w13, w13_bytes, host.w13);
      quantize_into(experts, first + i, w2, w2_bytes, host.w2);
    });
    for (std::int64_t i = 0; i < some; ++i) {
      const HostExpert& host = hosts[static_cast<std::size_t>(i)];
      upload_matrix(host.w13, first + i, w13_bytes, result[0].w13, result[0].w13_scale, stream);
      upload_matrix(host.w2, first + i, w2_bytes, result[0].w2, result[0].w2_scale, stream);
    }
    stream.synchronize();  // the host's memory is used again
  }
  for (int set = 1; set < sets; ++set) {
    WeightSet copy = allocate(w13_bytes, w2_bytes, static_cast<std::size_t>(count));
    copy.w13.copy_from(stream, result[0].w13);
    copy.w2.copy_from(stream, result[0].w2);
    if (w13_bytes.scales != 0) {
      copy.w13_scale.copy_from(stream, result[0].w13_scale);
      copy.w2_scale.copy_from(stream, result[0].w2_scale);
    }
    result.push_back(std::move(copy));
  }
  stream.synchronize();
  return result;
}

}  // namespace moegauge::cuda
