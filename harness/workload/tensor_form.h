// What a tensor of a replayed layer must be: dtype and shape, by scheme and layer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/tensors/safetensors.h"
#include "reference/schemes/scheme.h"

namespace moegauge {

struct TensorForm {
  std::vector<TensorDtype> dtypes;  // any of them
  std::vector<std::int64_t> shape;
  bool loose = false;  // axes of 1 at the end may be left out or added
};
// "F8_E4M3 or U8 [8, 256, 64]".
std::string describe(const TensorForm& form);
bool fits(const TensorInfo& tensor, const TensorForm& form);

// One part of all experts' w13 or w2 in the scheme's canonical storage.
struct CanonicalPart {
  std::string name;  // w13, w13_scale, w13_zero_point, w13_g_idx
  TensorForm form;   // [experts, ...]
  std::span<std::byte> Matrix::*bytes = nullptr;
};
// The parts that the scheme has, values first. Shapes are of one expert's matrix times `experts`.
std::vector<CanonicalPart> canonical_parts(const Scheme& scheme, const MatrixShape& shape,
                                           std::int64_t experts);

// Where one scale serves a whole w13, checkpoints have one for gate and one for up: w13_scale in
// that form. Nothing where the scheme or the role has none.
std::optional<TensorForm> split_scale_form(const Scheme& scheme, const MatrixShape& shape,
                                           std::int64_t experts);

// Names of all parts that some scheme has: "w13_scale" and so on.
std::vector<std::string> part_names(Role role);

// Floats of any of the formats that keep originals: bf16, fp16, fp32.
TensorForm original_form(const MatrixShape& shape, std::int64_t experts);
TensorDtype tensor_dtype_of(Dtype dtype);

}  // namespace moegauge
