// A checkpoint: one safetensors file, or several (shards) with an index that says which tensor is
// in which, `model.safetensors.index.json`: {"metadata": {...}, "weight_map": {name: file}}.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "harness/json/document.h"
#include "harness/tensors/safetensors.h"

namespace moegauge {

inline constexpr std::string_view checkpoint_index_name = "model.safetensors.index.json";

// The files that Checkpoint(path) reads, as far as they can be told: what is broken is for it to
// say.
std::vector<std::filesystem::path> checkpoint_files(const std::filesystem::path& path);

class Checkpoint {
 public:
  // `path`: a .safetensors file, an index, or a folder that holds one of the two. Throws InputError
  // where a shard is missing or bad, a tensor is not in the shard that the index names, or a shard
  // holds a tensor that the index places in another.
  explicit Checkpoint(const std::filesystem::path& path);

  struct Place {
    const SafetensorsFile* file = nullptr;  // null: there is no such tensor
    const TensorInfo* tensor = nullptr;
  };
  Place find(std::string_view name) const;
  // Throws InputError that names the checkpoint and similar tensors.
  Place at(std::string_view name) const;

  // In the order in which the index first names them.
  const std::vector<std::unique_ptr<SafetensorsFile>>& shards() const { return shards_; }
  // The path of the index, or of the one file: what errors name.
  const std::filesystem::path& path() const { return path_; }
  // Nothing where the checkpoint is one file without an index.
  const std::optional<JsonDocument>& index() const { return index_; }

 private:
  void open_shards();
  void add_tensors(const SafetensorsFile& shard);

  std::filesystem::path path_;
  std::optional<JsonDocument> index_;
  std::vector<std::unique_ptr<SafetensorsFile>> shards_;
  std::unordered_map<std::string_view, Place> places_;  // keys lie in the shards' headers
};

}  // namespace moegauge
