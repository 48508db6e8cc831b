// MXFP8 checkpoints as block-FP8 ones (reference/convert/mxfp8_to_block.h has the arithmetic).
//
// Converted is every F8_E4M3 tensor NAME of two or three axes, [.., rows, cols], with a companion
// of dtype F8_E8M0 or U8 and shape [.., rows, ceil(cols / 32)], called NAME_scale, NAME_scale_inv,
// NAME.scale or NAME.scale_inv, or, where NAME is STEM.weight, STEM.scale or STEM.scale_inv. NAME
// keeps its name, dtype and shape; in place of the companion comes NAME_scale_inv, F32
// [.., ceil(rows / block_rows), ceil(cols / block_cols)]. All other tensors and the metadata are
// copied byte for byte. (The values of a pair whose scales lie in another shard take them along.)
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "reference/base/thread_pool.h"
#include "reference/convert/mxfp8_to_block.h"

namespace moegauge {

struct ConvertOptions {
  BlockTarget target = {};
  bool allow_non_finite = false;
  // Waits for the disk before the result has its name. An `out` that there is already is never
  // given up for less.
  bool sync = false;
  // Called before each part is written, from several threads at once; what it throws ends the
  // conversion as an error does.
  std::function<void()> before_write = [] {};
};

struct ConvertedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  BlockConversion sums;
};

struct ConvertReport {
  BlockConversion total;
  std::int64_t converted = 0, copied = 0;  // tensors; a pair counts once
  std::uint64_t bytes_read = 0;
  // F8_E4M3 tensors that were copied although something is called like their E8M0 scales.
  std::vector<std::string> notes;
};

// `in`: what Checkpoint reads. `out`: a file where `in` is a file, a folder where it is a folder or
// an index. It appears in one step once all is written, and an old one, which is replaced only once
// the new one is on the disk, is untouched where an error (InputError) ends the conversion; an old
// folder may hold only files that the new one has too.
// Memory: one tensor of the input, mapped, and per thread one row of blocks. `done` hears of each
// tensor as it is converted.
ConvertReport convert_checkpoint(const std::filesystem::path& in, const std::filesystem::path& out,
                                 const ConvertOptions& options, ThreadPool& pool,
                                 const std::function<void(const ConvertedTensor&)>& done);

}  // namespace moegauge
