// For safetensors_peer_test.py. `write FILE`: a file of every dtype whose bytes count 0, 1, 2 and
// so on within each tensor. `read FILE`: a line per tensor, "name dtype shape hexadecimal-bytes",
// and "metadata key value".
#include <iostream>
#include <string_view>

#include "harness/tensors/safetensors.h"
#include "harness/tensors/safetensors_writer.h"

using namespace moegauge;

namespace {

void write(const char* file) {
  std::vector<FileTensor> tensors;
  for (int dtype = 0; dtype <= static_cast<int>(TensorDtype::f64); ++dtype) {
    const auto type = static_cast<TensorDtype>(dtype);
    tensors.push_back({"x." + std::string(to_string(type)), type, {3, 1, 5}});
  }
  tensors.push_back({"scalar", TensorDtype::f32, {}});
  tensors.push_back({"empty", TensorDtype::i64, {2, 0}});
  SafetensorsWriter writer(file, tensors, {{"format", "pt"}, {"case", "a \"quoted\" one"}});
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    std::vector<std::byte> bytes(
        byte_count(tensors[i].dtype, tensors[i].shape, tensors[i].name, file));
    // 0 and 1 only where a byte is a boolean.
    const std::size_t values = tensors[i].dtype == TensorDtype::boolean ? 2 : 256;
    for (std::size_t b = 0; b < bytes.size(); ++b) bytes[b] = static_cast<std::byte>(b % values);
    writer.write(i, 0, bytes);
  }
  writer.commit();
}

void read(const char* path) {
  const SafetensorsFile file(path);
  for (const auto& [key, value] : file.header().metadata) {
    std::cout << "metadata " << key << ' ' << value << '\n';
  }
  for (const TensorInfo& tensor : file.header().tensors) {
    std::cout << tensor.name << ' ' << to_string(tensor.dtype) << ' ';
    for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
      std::cout << (d == 0 ? "" : ",") << tensor.shape[d];
    }
    std::cout << ' ';
    const MappedBytes mapped = file.map(tensor);
    for (const std::byte byte : mapped.bytes()) {
      std::cout << "0123456789abcdef"[static_cast<int>(byte) >> 4]
                << "0123456789abcdef"[static_cast<int>(byte) & 15];
    }
    std::cout << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::string_view(argv[1]) == "write" ? write(argv[2]) : read(argv[2]);
  return 0;
}
