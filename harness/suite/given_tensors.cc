#include "harness/suite/given_tensors.h"

#include <cstring>
#include <utility>
#include <vector>

namespace moegauge {

GivenTensors given_tensors(const SafetensorsFile& file) {
  std::vector<GivenTensor> all;
  for (const TensorInfo& tensor : file.header().tensors) {
    GivenTensor& given = all.emplace_back();
    given.name = tensor.name;
    given.shape = tensor.shape;
    given.text = describe(tensor);
    if (tensor.dtype != TensorDtype::i32) continue;
    given.integers = [&file, &tensor] {
      const MappedBytes mapped = file.map(tensor);
      std::vector<std::int32_t> values(mapped.bytes().size() / sizeof(std::int32_t));
      if (!values.empty()) std::memcpy(values.data(), mapped.bytes().data(), mapped.bytes().size());
      return values;
    };
  }
  return {file.path().string(), std::move(all)};
}

}  // namespace moegauge
