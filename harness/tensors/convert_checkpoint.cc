#include "harness/tensors/convert_checkpoint.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/json/nearest.h"
#include "harness/result/safe_file.h"
#include "harness/tensors/convert_plan.h"
#include "harness/tensors/new_folder.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t copied_at_once = 4 << 20;

std::span<const std::uint8_t> octets(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

// "[1, 2, 64]" of an element of `shape` in row-major order.
std::string position(std::int64_t element, std::span<const std::int64_t> shape) {
  std::string text = "]";
  for (std::size_t d = shape.size(); d-- > 0;) {
    text = (d == 0 ? "[" : ", ") + std::to_string(element % shape[d]) + text;
    element /= shape[d];
  }
  return text;
}

class Converter {
 public:
  Converter(const ConvertOptions& options, ThreadPool& pool,
            const std::function<void(const ConvertedTensor&)>& done, Sync sync)
      : options_(options), pool_(pool), done_(done), sync_(sync) {}

  void write(const ShardPlan& shard, const fs::path& out) {
    SafetensorsWriter writer(out, shard.tensors, shard.from->header().metadata, sync_);
    for (const CopiedTensor& tensor : shard.copied) copy(*shard.from, tensor, writer);
    for (const MxPair& pair : shard.pairs) convert(*shard.from, pair, writer);
    writer.commit();
  }

  ConvertReport report;

 private:
  void copy(const SafetensorsFile& file, const CopiedTensor& tensor, SafetensorsWriter& writer) {
    const MappedBytes mapped = file.map(*tensor.from);
    const auto bytes = mapped.bytes();
    const auto parts =
        static_cast<std::int64_t>((bytes.size() + copied_at_once - 1) / copied_at_once);
    pool_.parallel_for(parts, [&](std::int64_t part) {
      options_.before_write();
      const std::uint64_t begin = static_cast<std::uint64_t>(part) * copied_at_once;
      writer.write(tensor.to, begin,
                   bytes.subspan(begin, std::min(copied_at_once, bytes.size() - begin)));
    });
    ++report.copied;
    report.bytes_read += bytes.size();
  }

  void convert(const SafetensorsFile& file, const MxPair& pair, SafetensorsWriter& writer) {
    const MappedBytes values = file.map(*pair.values);
    const MappedBytes scales = pair.scales.file->map(*pair.scales.tensor);
    const BlockTarget& target = options_.target;
    std::vector<float> block_scales;
    if (!values.bytes().empty()) {
      block_scales.resize(
          static_cast<std::size_t>(pair.experts * blocks_of(pair.rows, target.block_rows) *
                                   blocks_of(pair.cols, target.block_cols)));
    }
    const ConvertedTensor tensor{
        .name = pair.values->name,
        .shape = pair.values->shape,
        .sums = mxfp8_to_block({.experts = pair.experts,
                                .rows = pair.rows,
                                .cols = pair.cols,
                                .values = octets(values.bytes()),
                                .scales = octets(scales.bytes())},
                               target, pool_, block_scales,
                               [&](std::int64_t first, std::span<const std::uint8_t> part) {
                                 options_.before_write();
                                 writer.write(pair.values_to, static_cast<std::uint64_t>(first),
                                              std::as_bytes(part));
                               })};
    if (tensor.sums.non_finite > 0 && !options_.allow_non_finite) {
      throw InputError(file.path().string(),
                       "tensor " + in_quotes(tensor.name) + " holds " +
                           std::to_string(tensor.sums.non_finite) +
                           " values that are not finite, the first at " +
                           position(tensor.sums.first_non_finite, tensor.shape),
                       "mend it, or convert with --allow-nonfinite");
    }
    writer.write(pair.scales_to, 0, std::as_bytes(std::span(block_scales)));
    ++report.converted;
    report.bytes_read += values.bytes().size() + scales.bytes().size();
    report.total += tensor.sums;
    done_(tensor);
  }

  const ConvertOptions& options_;
  ThreadPool& pool_;
  const std::function<void(const ConvertedTensor&)>& done_;
  Sync sync_;
};

std::string new_index(const Checkpoint& checkpoint, const ConvertPlan& plan) {
  nlohmann::ordered_json index = checkpoint.index()->root();
  auto map = nlohmann::ordered_json::object();
  std::uint64_t total = 0;
  for (const ShardPlan& shard : plan.shards) {
    const std::string file = shard.from->path().filename().string();
    for (const FileTensor& tensor : shard.tensors) {
      // Past ordered_json's own insertion, which searches all members; names are known to differ.
      map.get_ref<nlohmann::ordered_json::object_t&>().emplace_back(tensor.name, file);
      total += byte_count(tensor.dtype, tensor.shape, tensor.name, file);
    }
  }
  auto& metadata = index["metadata"];
  if (!metadata.is_object()) metadata = nlohmann::ordered_json::object();
  metadata["total_size"] = total;
  index["weight_map"] = std::move(map);
  return index.dump(2) + "\n";
}

void refuse_same(const fs::path& in, const fs::path& out) {
  std::error_code ignored;
  if (fs::equivalent(in, out, ignored)) {
    throw InputError(out.string(), "it is what is being converted",
                     "name another place for the result");
  }
}

}  // namespace

ConvertReport convert_checkpoint(const fs::path& in, const fs::path& out,
                                 const ConvertOptions& options, ThreadPool& pool,
                                 const std::function<void(const ConvertedTensor&)>& done) {
  refuse_same(in, out);
  const Checkpoint checkpoint(in);
  const ConvertPlan plan = plan_conversion(checkpoint, options.target);
  std::error_code ignored;
  const Sync sync =
      options.sync || fs::exists(out, ignored) ? Sync::before_rename : Sync::left_to_system;
  Converter converter(options, pool, done, sync);
  converter.report.notes = plan.notes;
  if (!checkpoint.index() && fs::equivalent(in, checkpoint.path())) {
    converter.write(plan.shards.front(), out);
    return converter.report;
  }
  refuse_same(checkpoint.path().parent_path().empty() ? "." : checkpoint.path().parent_path(), out);
  std::vector<std::string> names;
  for (const ShardPlan& shard : plan.shards)
    names.push_back(shard.from->path().filename().string());
  if (checkpoint.index()) names.push_back(checkpoint.path().filename().string());
  NewFolder folder(out, names);
  for (const ShardPlan& shard : plan.shards) {
    converter.write(shard, folder.path() / shard.from->path().filename());
  }
  if (checkpoint.index()) {
    replace_file(folder.path() / checkpoint.path().filename(), new_index(checkpoint, plan));
  }
  folder.commit(sync);
  return converter.report;
}

}  // namespace moegauge
