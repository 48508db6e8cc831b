#include "harness/workload/op_dump.h"

#include <string>

#include "harness/tensors/safetensors_writer.h"
#include "harness/workload/dump.h"
#include "harness/workload/op_problem.h"

namespace moegauge {
namespace {

std::uint64_t bytes_of(std::span<const Tensor> tensors) {
  std::uint64_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += tensor.bytes.size();
  return bytes;
}

TensorMetadata metadata_of(const DumpedOp& dumped) {
  return {{"case", case_id(dumped.coordinates)},
          {"scheme", dumped.problem.scheme->name()},
          {"layer", layer_fields_of(dumped.problem)},
          {"inputs", std::string(to_string(dumped.generator.distribution))},
          {"seed", std::to_string(dumped.generator.seed)}};
}

}  // namespace

void write_op_dump(const std::filesystem::path& file, const DumpedOp& dumped) {
  std::vector<const Tensor*> tensors;
  const auto add = [&](std::span<const Tensor> all) {
    for (const Tensor& tensor : all) tensors.push_back(&tensor);
  };
  add(dumped.inputs);
  if (bytes_of(dumped.weights) <= max_dumped_weights) add(dumped.weights);
  add(dumped.outputs);
  add(dumped.answers);
  std::vector<FileTensor> specs;
  for (const Tensor* tensor : tensors) {
    specs.push_back({tensor->spec.name, form_of(tensor->spec).dtypes.front(), tensor->spec.shape});
  }
  SafetensorsWriter writer(file, specs, metadata_of(dumped));
  for (std::size_t i = 0; i < tensors.size(); ++i) writer.write(i, 0, tensors[i]->bytes);
  writer.commit();
}

}  // namespace moegauge
