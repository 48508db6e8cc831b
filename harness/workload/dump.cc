#include "harness/workload/dump.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "harness/tensors/safetensors_writer.h"
#include "harness/workload/tensor_form.h"
#include "reference/dtype.h"
#include "reference/schemes/matrix_storage.h"

namespace moegauge {
namespace {

using Shape = std::vector<std::int64_t>;

// Tensors of a file to be, each with what writes it: bytes at offsets of its own.
class Tensors {
 public:
  using Put = std::function<void(std::uint64_t offset, std::span<const std::byte> bytes)>;
  using Fill = std::function<void(const Put& put)>;

  void add(std::string name, TensorDtype dtype, Shape shape, Fill fill) {
    specs_.push_back({std::move(name), dtype, std::move(shape)});
    fills_.push_back(std::move(fill));
  }
  // `values` outlive write().
  template <typename T>
  void add_values(std::string name, TensorDtype dtype, Shape shape, std::span<const T> values) {
    add(std::move(name), dtype, std::move(shape),
        [values](const Put& put) { put(0, std::as_bytes(values)); });
  }
  template <typename T>
  void add_owned(std::string name, TensorDtype dtype, Shape shape, std::vector<T> values) {
    add(std::move(name), dtype, std::move(shape),
        [values = std::move(values)](const Put& put) { put(0, std::as_bytes(std::span(values))); });
  }

  void write(const std::filesystem::path& file, const TensorMetadata& metadata) const {
    SafetensorsWriter writer(file, specs_, metadata);
    for (std::size_t i = 0; i < fills_.size(); ++i) {
      fills_[i]([&](std::uint64_t offset, std::span<const std::byte> bytes) {
        writer.write(i, offset, bytes);
      });
    }
    writer.commit();
  }

 private:
  std::vector<FileTensor> specs_;
  std::vector<Fill> fills_;
};

// Values of one expert before quantisation, in the dtype that holds them.
std::vector<std::byte> original_bytes(const ExpertSource& experts, std::int64_t expert,
                                      const MatrixShape& shape, TensorDtype dtype) {
  std::vector<float> values(static_cast<std::size_t>(shape.rows * shape.cols));
  experts.original(expert, shape, 0, shape.rows, values);
  const auto bytes_of = [](const auto& all) {
    const auto bytes = std::as_bytes(std::span(all));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  if (dtype == TensorDtype::f32) return bytes_of(values);
  const Dtype half = dtype == TensorDtype::bf16 ? Dtype::bf16 : Dtype::fp16;
  std::vector<std::uint16_t> bits(values.size());
  std::ranges::transform(values, bits.begin(), [half](float v) { return to_bits(half, v); });
  return bytes_of(bits);
}

// Weights as originals where they are known, else as the scheme stores them.
void add_weight(Tensors& tensors, const DumpedCase& dumped, Role role) {
  const MatrixShape shape = weight_shape(dumped.problem.layer, role);
  const std::int64_t local = dumped.problem.layer.local_experts();
  const ExpertSource& experts = dumped.workload.experts();
  const Scheme& scheme = *dumped.problem.scheme;
  const auto parts = canonical_parts(scheme, shape, local);
  if (const auto dtype = dumped.workload.originals(role)) {
    tensors.add(parts.front().name, *dtype, {local, shape.rows, shape.cols},
                [=, &experts](const Tensors::Put& put) {
                  for (std::int64_t e = 0; e < local; ++e) {
                    const auto bytes = original_bytes(experts, e, shape, *dtype);
                    put(static_cast<std::uint64_t>(e) * bytes.size(), bytes);
                  }
                });
    return;
  }
  for (const CanonicalPart& part : parts) {
    tensors.add(part.name, part.form.dtypes.front(), part.form.shape,
                [=, &experts, &scheme](const Tensors::Put& put) {
                  MatrixStorage storage(scheme, shape);
                  for (std::int64_t e = 0; e < local; ++e) {
                    experts.quantized(e, storage.view());
                    const std::span<std::byte> bytes = storage.view().*part.bytes;
                    put(static_cast<std::uint64_t>(e) * bytes.size(), bytes);
                  }
                });
  }
}

std::uint64_t weight_bytes(const DumpedCase& dumped) {
  std::uint64_t bytes = 0;
  for (const Role role : {Role::w13, Role::w2}) {
    const MatrixShape shape = weight_shape(dumped.problem.layer, role);
    const auto dtype = dumped.workload.originals(role);
    bytes += dtype ? static_cast<std::uint64_t>(shape.rows * shape.cols) * element_size(*dtype)
                   : dumped.problem.scheme->weight_bytes(shape).total();
  }
  return bytes * static_cast<std::uint64_t>(dumped.problem.layer.local_experts());
}

void add_biases(Tensors& tensors, const DumpedCase& dumped) {
  const Layer& layer = dumped.problem.layer;
  if (!layer.expert_bias) return;
  for (const Role role : {Role::w13, Role::w2}) {
    std::vector<float> all;
    for (std::int64_t e = 0; e < layer.local_experts(); ++e) {
      const auto one = dumped.workload.experts().bias(e, role);
      all.insert(all.end(), one.begin(), one.end());
    }
    tensors.add_owned(role == Role::w13 ? "w13_bias" : "w2_bias", TensorDtype::f32,
                      {layer.local_experts(), weight_shape(layer, role).rows}, std::move(all));
  }
}

// What the layer is given beside weights and rows.
void add_rest(Tensors& tensors, const DumpedCase& dumped) {
  const Layer& layer = dumped.problem.layer;
  add_biases(tensors, dumped);
  if (dumped.problem.scheme->traits().activation.static_scale) {
    const ExpertSource& experts = dumped.workload.experts();
    tensors.add_owned("x_scale", TensorDtype::f32, {1},
                      std::vector{experts.activation_scale(Role::w13)});
    tensors.add_owned("h_scale", TensorDtype::f32, {1},
                      std::vector{experts.activation_scale(Role::w2)});
  }
  if (!layer.expert_map.empty()) {
    tensors.add_values<std::int32_t>("expert_map", TensorDtype::i32, {layer.experts},
                                     layer.expert_map);
  }
}

// Rows of the truth in the order in which the kernel was given them.
std::vector<double> rows_of(const std::vector<double>& truth, const DumpedCase& dumped) {
  const std::int64_t cols = dumped.problem.layer.hidden_size;
  std::vector<double> rows;
  rows.reserve(dumped.index.size() * static_cast<std::size_t>(cols));
  for (const std::int32_t row : dumped.index) {
    const auto begin = truth.begin() + row * cols;
    rows.insert(rows.end(), begin, begin + cols);
  }
  return rows;
}

TensorMetadata metadata_of(const DumpedCase& dumped) {
  const Generator generator = dumped.workload.generator();
  return {{"case", case_id(dumped.coordinates)},
          {"scheme", dumped.problem.scheme->name()},
          {"layer", layer_fields_of(dumped.problem.layer)},
          {"inputs", std::string(to_string(generator.distribution))},
          {"seed", std::to_string(generator.seed)}};
}

}  // namespace

void write_dump(const std::filesystem::path& file, const DumpedCase& dumped) {
  const Layer& layer = dumped.problem.layer;
  const std::int64_t tokens = dumped.inputs.tokens;
  const Shape rows = {tokens, layer.hidden_size}, pairs = {tokens, layer.top_k};
  const TensorDtype half = tensor_dtype_of(layer.dtype);
  Tensors tensors;
  tensors.add_values<std::uint16_t>("x", half, rows, dumped.inputs.x);
  tensors.add_values<std::int32_t>("topk_ids", TensorDtype::i32, pairs, dumped.inputs.topk_ids);
  tensors.add_values<float>("topk_weights", TensorDtype::f32, pairs, dumped.inputs.topk_weights);
  if (weight_bytes(dumped) <= max_dumped_weights) {
    for (const Role role : {Role::w13, Role::w2}) add_weight(tensors, dumped, role);
  }
  add_rest(tensors, dumped);
  tensors.add_values<std::uint16_t>("output", half, rows, dumped.output);
  tensors.add_owned("emulated", TensorDtype::f64, rows, rows_of(dumped.truth.emulated, dumped));
  tensors.add_owned("unquantized", TensorDtype::f64, rows,
                    rows_of(dumped.truth.unquantized, dumped));
  tensors.write(file, metadata_of(dumped));
}

}  // namespace moegauge
