#include "harness/tensors/checkpoint.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/json/cursor.h"
#include "harness/json/nearest.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

const char* const what_is_read =
    "give a .safetensors file, an index of shards, or a folder with either";

std::vector<fs::path> safetensors_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".safetensors") found.push_back(at->path());
  }
  return found;
}

// The file within a folder that stands for it.
fs::path main_file(const fs::path& folder) {
  std::error_code error;
  // A link that leads nowhere is there, and reading it says what is wrong.
  fs::path index = folder / checkpoint_index_name;
  if (fs::exists(fs::symlink_status(index, error))) return index;
  const std::vector<fs::path> found = safetensors_in(folder);
  if (found.size() == 1) return found.front();
  throw InputError(folder.string(),
                   found.empty()
                       ? "it holds no safetensors file"
                       : "it holds " + std::to_string(found.size()) + " safetensors files and no " +
                             std::string(checkpoint_index_name),
                   what_is_read);
}

// The shards lie beside the index: a name must not lead anywhere else.
fs::path shard_path(const fs::path& index, const JsonCursor& value) {
  const std::string name = value.text();
  if (name.find('/') != std::string::npos || name == "." || name == "..") {
    value.fail("the shard " + in_quotes(name) + " is no plain file name",
               "shards lie in the folder of the index");
  }
  return index.parent_path() / name;
}

// Those that the index names; what cannot be read names none.
std::vector<fs::path> shards_named_by(const fs::path& index) {
  std::set<fs::path> shards;
  try {
    const JsonDocument document = JsonDocument::read(index);
    for (const auto& [name, value] : JsonCursor(document).at("weight_map").members()) {
      shards.insert(shard_path(index, value));
    }
  } catch (const InputError&) {
  }
  return {shards.begin(), shards.end()};
}

}  // namespace

std::vector<fs::path> checkpoint_files(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    std::vector<fs::path> files = {path};
    if (path.extension() == ".json") {
      std::ranges::copy(shards_named_by(path), std::back_inserter(files));
    }
    return files;
  }
  const fs::path index = path / checkpoint_index_name;
  if (fs::exists(fs::symlink_status(index, error))) return checkpoint_files(index);
  return safetensors_in(path);
}

Checkpoint::Checkpoint(const fs::path& path) {
  std::error_code ignored;
  path_ = fs::is_directory(path, ignored) ? main_file(path) : path;
  if (path_.extension() == ".json") {
    open_shards();
    return;
  }
  shards_.push_back(std::make_unique<SafetensorsFile>(path_));
  add_tensors(*shards_.back());
}

void Checkpoint::add_tensors(const SafetensorsFile& shard) {
  for (const TensorInfo& tensor : shard.header().tensors) {
    const auto [found, added] = places_.try_emplace(tensor.name, Place{&shard, &tensor});
    if (!added && found->second.file != &shard) {
      throw InputError(shard.path().string(),
                       "it holds tensor " + in_quotes(tensor.name) + ", and so does " +
                           found->second.file->path().string(),
                       "a tensor is in one shard");
    }
  }
}

void Checkpoint::open_shards() {
  index_ = JsonDocument::read(path_);
  const JsonCursor map = JsonCursor(*index_).at("weight_map");
  std::unordered_map<std::string, const SafetensorsFile*> opened;
  const auto members = map.members();
  for (const auto& [name, value] : members) {
    const fs::path file = shard_path(path_, value);
    const SafetensorsFile*& shard = opened[file.string()];
    if (shard == nullptr) {
      std::error_code ignored;
      if (!fs::exists(file, ignored)) {
        value.fail("the shard " + file.string() + ", which holds tensor " + in_quotes(name) +
                       ", is missing",
                   "put every shard beside the index");
      }
      shard = shards_.emplace_back(std::make_unique<SafetensorsFile>(file)).get();
    }
    const TensorInfo* tensor = shard->header().find(name);
    if (tensor == nullptr) {
      value.fail("tensor " + in_quotes(name) + " is not in the shard " + file.string(),
                 "the index must name the shard that holds it");
    }
    places_.emplace(tensor->name, Place{shard, tensor});
  }
  if (shards_.empty()) map.fail("it names no shard", "map each tensor's name to its file");
  for (const auto& shard : shards_) add_tensors(*shard);
}

Checkpoint::Place Checkpoint::find(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? Place{} : found->second;
}

Checkpoint::Place Checkpoint::at(std::string_view name) const {
  if (const Place place = find(name); place.file != nullptr) return place;
  std::vector<std::string> names;
  for (const auto& [known, place] : places_) names.emplace_back(known);
  std::ranges::sort(names);
  const std::vector<std::string> near = similar_names(name, names, 3);
  throw InputError(path_.string(), "there is no tensor " + in_quotes(name),
                   near.empty() ? "it has " + std::to_string(names.size()) + " others"
                                : "similar names: " + joined(near));
}

}  // namespace moegauge
