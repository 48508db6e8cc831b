#include "harness/workload/replay_file.h"

#include <algorithm>

#include "harness/json/nearest.h"
#include "reference/base/input_error.h"
#include "reference/formats/bf16.h"
#include "reference/formats/fp16.h"

namespace moegauge {
namespace {

std::vector<std::string> layer_names() {
  std::vector<std::string> names = {
      "x",          "topk_ids", "topk_weights", "x_scale",       "h_scale",
      "expert_map", "w13_bias", "w2_bias",      "router_logits", "correction_bias"};
  for (const Role role : {Role::w13, Role::w2}) {
    for (std::string& name : part_names(role)) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

void ReplayFile::require_names(std::span<const std::string> known,
                               std::span<const std::string> ignored,
                               const std::string& reader) const {
  for (const TensorInfo& tensor : file_.header().tensors) {
    if (std::ranges::count(known, tensor.name) + std::ranges::count(ignored, tensor.name) > 0) {
      continue;
    }
    throw InputError(where(), reader + " reads a tensor called " + in_quotes(tensor.name),
                     suggestion(tensor.name, known));
  }
}

void ReplayFile::require_layer_names() const {
  // What a dump holds beside what it replays.
  static const std::vector<std::string> answers = {"output", "emulated", "unquantized"};
  require_names(layer_names(), answers, "nothing");
}

std::string ReplayFile::metadata(std::string_view key) const {
  for (const auto& [name, value] : file_.header().metadata) {
    if (name == key) return value;
  }
  return "";
}

std::size_t ReplayFile::require(const TensorInfo& tensor, std::span<const TensorForm> forms) const {
  std::string right;
  for (std::size_t i = 0; i < forms.size(); ++i) {
    if (fits(tensor, forms[i])) return i;
    right += (i == 0 ? "" : ", or ") + describe(forms[i]);
  }
  fail(tensor.name, "is " + describe(tensor), "the case needs " + right);
}

void ReplayFile::fail(std::string_view name, const std::string& wrong,
                      const std::string& right) const {
  throw InputError(where(), "tensor " + in_quotes(name) + " " + wrong, right);
}

void ReplayFile::read_bytes(const TensorInfo& tensor, std::uint64_t offset,
                            std::span<std::byte> out) const {
  const MappedBytes mapped = file_.map(tensor);
  std::ranges::copy(mapped.bytes().subspan(offset, out.size()), out.begin());
}

void ReplayFile::read_floats(const TensorInfo& tensor, std::int64_t first,
                             std::span<float> out) const {
  const MappedBytes mapped = file_.map(tensor);
  const std::size_t size = element_size(tensor.dtype);
  const std::byte* next = mapped.bytes().data() + static_cast<std::size_t>(first) * size;
  // The format does not promise that elements are aligned.
  for (float& value : out) {
    if (size == sizeof(float)) {
      std::memcpy(&value, next, size);
    } else {
      std::uint16_t bits = 0;
      std::memcpy(&bits, next, size);
      value = tensor.dtype == TensorDtype::bf16 ? bf16_to_float(bits) : fp16_to_float(bits);
    }
    next += size;
  }
}

std::vector<float> ReplayFile::read_floats(const TensorInfo& tensor) const {
  std::vector<float> values(tensor.bytes() / element_size(tensor.dtype));
  read_floats(tensor, 0, values);
  return values;
}

}  // namespace moegauge
