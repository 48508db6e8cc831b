#include "harness/tensors/convert_plan.h"

#include <algorithm>
#include <unordered_map>

#include "harness/json/nearest.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

using Shape = std::vector<std::int64_t>;

std::string scale_name(const std::string& values) { return values + "_scale_inv"; }

std::vector<std::string> companion_names(const std::string& name) {
  std::vector<std::string> names = {name + "_scale", name + "_scale_inv", name + ".scale",
                                    name + ".scale_inv"};
  constexpr std::string_view weight = ".weight";
  if (name.ends_with(weight)) {
    const std::string stem = name.substr(0, name.size() - weight.size());
    names.push_back(stem + ".scale");
    names.push_back(stem + ".scale_inv");
  }
  return names;
}

Shape scale_shape(const Shape& values, std::int64_t unit_rows, std::int64_t unit_cols) {
  Shape shape = values;
  shape.back() = blocks_of(shape.back(), unit_cols);
  shape[shape.size() - 2] = blocks_of(shape[shape.size() - 2], unit_rows);
  return shape;
}

class Planner {
 public:
  Planner(const Checkpoint& checkpoint, const BlockTarget& target)
      : checkpoint_(checkpoint), target_(target) {}

  ConvertPlan plan() {
    find_pairs();
    if (pair_of_.empty()) {
      throw InputError(checkpoint_.path().string(),
                       "it holds no F8_E4M3 tensor [.., rows, cols] with E8M0 scales "
                       "[.., rows, cols / 32], so there is nothing to convert",
                       plan_.notes.empty() ? "give an MXFP8 checkpoint" : plan_.notes.front());
    }
    for (const auto& shard : checkpoint_.shards()) add_shard(*shard);
    return std::move(plan_);
  }

 private:
  void find_pairs() {
    for (const auto& shard : checkpoint_.shards()) {
      for (const TensorInfo& tensor : shard->header().tensors) {
        if (tensor.dtype != TensorDtype::f8_e4m3) continue;
        const Checkpoint::Place scales = companion(tensor, *shard);
        if (scales.tensor != nullptr) add_pair(tensor, scales, *shard);
      }
    }
  }

  Checkpoint::Place companion(const TensorInfo& values, const SafetensorsFile& shard) {
    const bool is_matrix = values.shape.size() == 2 || values.shape.size() == 3;
    Checkpoint::Place found;
    std::string note;
    for (const std::string& name : companion_names(values.name)) {
      const Checkpoint::Place place = checkpoint_.find(name);
      if (place.tensor == nullptr ||
          (place.tensor->dtype != TensorDtype::f8_e8m0 && place.tensor->dtype != TensorDtype::u8)) {
        continue;
      }
      if (!is_matrix || place.tensor->shape != scale_shape(values.shape, 1, mx_group)) {
        note = "tensor " + in_quotes(values.name) + ", " + describe(values) +
               ", is copied as it is: " + in_quotes(name) + ", " + describe(*place.tensor) +
               ", is no scale per 1x32 group";
        continue;
      }
      if (found.tensor != nullptr) {
        throw InputError(shard.path().string(),
                         "tensor " + in_quotes(values.name) + " has two scales, " +
                             in_quotes(found.tensor->name) + " and " + in_quotes(name),
                         "keep the one that is meant");
      }
      found = place;
    }
    if (found.tensor == nullptr && !note.empty()) plan_.notes.push_back(note);
    return found;
  }

  void add_pair(const TensorInfo& values, const Checkpoint::Place& scales,
                const SafetensorsFile& shard) {
    if (const auto other = values_of_.find(scales.tensor); other != values_of_.end()) {
      throw InputError(shard.path().string(),
                       "tensors " + in_quotes(other->second->name) + " and " +
                           in_quotes(values.name) + " share the scales " +
                           in_quotes(scales.tensor->name),
                       "give each its own");
    }
    const std::string name = scale_name(values.name);
    if (const auto taken = checkpoint_.find(name);
        taken.tensor != nullptr && taken.tensor != scales.tensor) {
      throw InputError(shard.path().string(),
                       "the new scales of tensor " + in_quotes(values.name) + " would be called " +
                           in_quotes(name) + ", and there is such a tensor, " +
                           describe(*taken.tensor),
                       "remove or rename it");
    }
    const Shape& shape = values.shape;
    pair_of_[&values] = {.values = &values,
                         .scales = scales,
                         .experts = shape.size() == 3 ? shape[0] : 1,
                         .rows = shape[shape.size() - 2],
                         .cols = shape.back()};
    values_of_[scales.tensor] = &values;
  }

  void add_shard(const SafetensorsFile& file) {
    ShardPlan shard{.from = &file, .tensors = {}, .copied = {}, .pairs = {}};
    std::unordered_map<const TensorInfo*, std::size_t> scales_to;  // values -> place of the scales
    const auto add_scales = [&](const TensorInfo& values) {
      scales_to[&values] = shard.tensors.size();
      shard.tensors.push_back({scale_name(values.name), TensorDtype::f32,
                               scale_shape(values.shape, target_.block_rows, target_.block_cols)});
    };
    for (const TensorInfo& tensor : file.header().tensors) {
      if (const auto values = values_of_.find(&tensor); values != values_of_.end()) {
        if (file.header().find(values->second->name) == values->second) add_scales(*values->second);
        continue;
      }
      const std::size_t place = shard.tensors.size();
      shard.tensors.push_back({tensor.name, tensor.dtype, tensor.shape});
      const auto pair = pair_of_.find(&tensor);
      if (pair == pair_of_.end()) {
        shard.copied.push_back({&tensor, place});
        continue;
      }
      pair->second.values_to = place;
      shard.pairs.push_back(pair->second);
      if (pair->second.scales.file != &file) add_scales(tensor);
    }
    for (MxPair& pair : shard.pairs) pair.scales_to = scales_to.at(pair.values);
    if (!shard.tensors.empty() || checkpoint_.shards().size() == 1) {
      plan_.shards.push_back(std::move(shard));
    }
  }

  const Checkpoint& checkpoint_;
  const BlockTarget& target_;
  ConvertPlan plan_;
  std::unordered_map<const TensorInfo*, MxPair> pair_of_;               // by values
  std::unordered_map<const TensorInfo*, const TensorInfo*> values_of_;  // by scales
};

}  // namespace

ConvertPlan plan_conversion(const Checkpoint& checkpoint, const BlockTarget& target) {
  return Planner(checkpoint, target).plan();
}

}  // namespace moegauge
