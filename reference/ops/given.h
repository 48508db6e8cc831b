// Tensors that somebody gives an op, by name: what is known of them before they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace moegauge {

struct GivenTensor {
  std::string name = {};
  std::vector<std::int64_t> shape = {};
  std::string text = {};  // "F32 [5, 160]", for messages
  // Its elements, where they are 32-bit integers; else empty.
  std::function<std::vector<std::int32_t>()> integers = {};
};

class GivenTensors {
 public:
  // `where` is named in errors.
  GivenTensors(std::string where, std::vector<GivenTensor> tensors)
      : where_(std::move(where)), tensors_(std::move(tensors)) {}

  // nullptr where it is not given.
  const GivenTensor* find(std::string_view name) const;
  // Extent `axis` of a tensor that has `rank` axes; `otherwise` where it is not given. Throws
  // InputError where it has another rank.
  std::int64_t extent(std::string_view name, std::size_t rank, std::size_t axis,
                      std::int64_t otherwise = 0) const;

 private:
  std::string where_;
  std::vector<GivenTensor> tensors_;
};

}  // namespace moegauge
