#include "kernels/cuda/device_weights.h"

namespace moegauge::cuda {
namespace {

WeightSet allocate(const MatrixBytes& w13, const MatrixBytes& w2, std::size_t experts) {
  return {.w13 = Buffer(experts * w13.values),
          .w2 = Buffer(experts * w2.values),
          .w13_scale = Buffer(experts * w13.scales),
          .w2_scale = Buffer(experts * w2.scales)};
}

// One expert's matrix into its place; `host` holds it until the stream is synchronised.
void upload_expert(const ExpertSource& source, std::int64_t expert, const MatrixShape& shape,
                   const MatrixBytes& bytes, const Buffer& values, const Buffer& scales,
                   std::vector<std::byte>& host, const Stream& stream) {
  host.resize(bytes.total());
  const std::span<std::byte> all(host);
  const Matrix matrix = {.shape = shape,
                         .values = all.first(bytes.values),
                         .scales = all.subspan(bytes.values, bytes.scales),
                         .zero_points = {},
                         .group_index = {}};
  source.quantized(expert, matrix);
  const auto at = static_cast<std::size_t>(expert);
  values.upload(stream, matrix.values, at * bytes.values);
  if (bytes.scales != 0) scales.upload(stream, matrix.scales, at * bytes.scales);
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
  std::vector<std::byte> host13, host2;
  for (std::int64_t e = 0; e < count; ++e) {
    upload_expert(experts, e, w13, w13_bytes, result[0].w13, result[0].w13_scale, host13, stream);
    upload_expert(experts, e, w2, w2_bytes, result[0].w2, result[0].w2_scale, host2, stream);
    stream.synchronize();  // the host buffers are used again
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
