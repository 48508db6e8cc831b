#include "reference/ops/given.h"

#include <algorithm>
#include <cstddef>

#include "reference/base/input_error.h"

namespace moegauge {

const GivenTensor* GivenTensors::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors_, name, &GivenTensor::name);
  return found == tensors_.end() ? nullptr : &*found;
}

std::int64_t GivenTensors::extent(std::string_view name, std::size_t rank, std::size_t axis,
                                  std::int64_t otherwise) const {
  const GivenTensor* tensor = find(name);
  if (tensor == nullptr) return otherwise;
  if (tensor->shape.size() == rank) return tensor->shape[axis];
  throw InputError(where_, "tensor \"" + tensor->name + "\" is " + tensor->text,
                   "it has " + std::to_string(rank) + " axes");
}

}  // namespace moegauge
